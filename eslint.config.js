// Lints what the compiler and prettier can't: promises left floating, switches left open, files and functions
// grown past their bound. Import direction is dependency-cruiser's; unused exports and packages are knip's.
import tseslint from 'typescript-eslint';

const sizes = (lines, functionLines) => ({
  'max-lines': ['error', { max: lines }],
  'max-lines-per-function': functionLines
    ? ['error', { max: functionLines, skipBlankLines: true, skipComments: true, IIFEs: true }]
    : 'off',
});

export default tseslint.config(
  { ignores: ['dist/**', 'coverage/**', 'node_modules/**', '**/.holdfast/**', 'test-output/**'] },
  {
    files: ['**/*.ts'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'separate-type-imports' }],
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/only-throw-error': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      ...sizes(400, 60),
    },
  },
  // A `describe` is one long function by nature; a test file may hold 600 lines.
  { files: ['test/**/*.ts', 'examples/**/*.test.ts'], rules: sizes(600) },
);

/** The package's own, as it names itself to clients and servers. */
export const VERSION = '0.1.0';

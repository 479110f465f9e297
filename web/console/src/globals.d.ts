/** The version in package.json, filled in by the build. */
declare const CONSOLE_VERSION: string;

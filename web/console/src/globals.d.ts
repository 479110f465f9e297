/** The version in package.json, inserted by the build. */
declare const CONSOLE_VERSION: string;

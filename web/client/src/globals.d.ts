/** The version in package.json, filled in by the build. */
declare const CLIENT_VERSION: string;

/** The version in package.json, inserted by the build. */
declare const CLIENT_VERSION: string;

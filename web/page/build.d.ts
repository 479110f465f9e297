// Put in by the build (scripts/web): the worklets' content-hashed names,
// relative to the page, and the page's version from web/package.json.
declare const CAPTURE_WORKLET: string;
declare const PLAYBACK_WORKLET: string;
declare const PAGE_VERSION: string;

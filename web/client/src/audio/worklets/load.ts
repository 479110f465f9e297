/** Where the two worklets are served. */
export interface WorkletUrls {
  capture: string | URL;
  playback: string | URL;
}

/** The files beside this one in the package; bundlers that know `new URL` find and copy them. */
export function packagedWorklets(): WorkletUrls {
  return {
    capture: new URL("./worklets/capture.js", import.meta.url),
    playback: new URL("./worklets/playback.js", import.meta.url),
  };
}

/** Loads both into a context. A context loads a module once, however often it is asked. */
export async function loadWorklets(context: AudioContext, urls: WorkletUrls): Promise<void> {
  await Promise.all([context.audioWorklet.addModule(urls.capture), context.audioWorklet.addModule(urls.playback)]);
}

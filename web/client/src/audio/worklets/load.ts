import { VoiceError } from "../../errors.js";
import { onBlocked } from "../../policy.js";

/** The URLs of the two worklets. */
export interface WorkletUrls {
  capture: string | URL;
  playback: string | URL;
}

/** The worklets in this package. Bundlers that support `new URL` find and copy them. */
export function packagedWorklets(): WorkletUrls {
  return {
    capture: new URL("./worklets/capture.js", import.meta.url),
    playback: new URL("./worklets/playback.js", import.meta.url),
  };
}

/** Loads both worklets into a context; repeated calls load nothing. Rejects with a VoiceError. */
export async function loadWorklets(context: AudioContext, { capture, playback }: WorkletUrls): Promise<void> {
  if (!isSecureContext) {
    throw new VoiceError("insecure_page"); // insecure pages have no worklets
  }
  const load = (url: string | URL): Promise<void> => context.audioWorklet.addModule(url).catch((cause: unknown) => whyUnloaded(new URL(url, document.baseURI).href, cause));
  await Promise.all([load(capture), load(playback)]);
}

/**
 * Rejects with the reason why a worklet did not load. Chromium 156 reports no violation for a worklet that
 * the page's policy blocks, so this requests the file as a module, under the same directive
 * (script-src-elem), without running it.
 */
function whyUnloaded(url: string, cause: unknown): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (code: "worklets_blocked" | "worklets_missing" | "audio_unavailable") => (): void => {
      unwatch();
      link.remove();
      reject(new VoiceError(code, undefined, { cause }));
    };
    const unwatch = onBlocked(url, fail("worklets_blocked"));
    const link = Object.assign(document.createElement("link"), { rel: "modulepreload", href: url, onload: fail("audio_unavailable"), onerror: fail("worklets_missing") });
    document.head.append(link);
  });
}

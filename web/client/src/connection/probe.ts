/** So long a gateway has to say how it is. */
const PATIENCE_MS = 3000;

/**
 * Why a connection could not be opened: browsers hide what the gateway answered to the
 * handshake, so its /readyz is asked. Of a gateway of another origin no more can be known
 * than that it is there.
 */
export async function whyUnopened(voice: URL): Promise<"unreachable" | "full" | "refused"> {
  const ready = readyUrl(voice);
  const foreign = ready.origin !== new URL(document.baseURI).origin;
  try {
    const response = await fetch(ready, { cache: "no-store", mode: foreign ? "no-cors" : "same-origin", signal: AbortSignal.timeout(PATIENCE_MS) });
    return response.status === 503 ? "full" : "refused";
  } catch {
    return "unreachable";
  }
}

/** The /readyz of the gateway whose voice endpoint it is. */
export function readyUrl(voice: URL): URL {
  const url = new URL("../readyz", voice);
  url.protocol = voice.protocol === "wss:" ? "https:" : "http:";
  return url;
}

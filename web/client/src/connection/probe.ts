import { VoiceError, type VoiceErrorCode } from "../errors.js";
import { onBlocked } from "../policy.js";

/** How long to wait for the gateway's answer. */
const PATIENCE_MS = 3000;

/**
 * Finds out why a WebSocket did not open. Browsers hide the handshake's response, so this requests the same
 * address over HTTP. A gateway answers 426 or the reason for its refusal, readable by pages of any origin.
 */
export async function whyUnopened(voice: URL, closeCode: number): Promise<VoiceError> {
  const url = voice.href.replace(/^ws/, "http");
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const ask = (mode: RequestMode): Promise<Response> => fetch(url, { cache: "no-store", mode, signal });
  const fail = (code: VoiceErrorCode, message?: string, gatewayCode?: string): VoiceError =>
    new VoiceError(code, message, { retryable: code !== "origin" && code !== "wrong_path", gatewayCode, closeCode });
  let code: VoiceErrorCode = navigator.onLine === false ? "offline" : "unreachable";
  const unwatch = onBlocked(url, () => (code = "socket_blocked"));
  try {
    const answer = await ask("cors");
    return await ofAnswer(answer, fail);
  } catch {
    // Pages of any origin can read a gateway's response, so an unreadable one is not a gateway's.
    code = await ask("no-cors").then(() => "wrong_path", () => code);
    return fail(code);
  } finally {
    unwatch();
  }
}

async function ofAnswer(answer: Response, fail: (code: VoiceErrorCode, message?: string, gatewayCode?: string) => VoiceError): Promise<VoiceError> {
  const body = (await answer.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  const { code, message } = body?.error ?? {};
  switch (answer.status) {
    case 426:
      return fail("no_websocket");
    case 502:
    case 503:
    case 504:
      return fail("full", undefined, code);
    case 401:
    case 403:
    case 407:
    case 421:
    case 429:
      // A refusal without a code comes from a proxy.
      return code === "origin" ? fail(code, undefined, code) : fail("refused", message, code);
    default:
      return fail("wrong_path");
  }
}

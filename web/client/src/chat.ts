/**
 * The text agent: sends one message, receives a stream of messages (POST /v1/chat).
 *
 *     import { chat } from "@voicegw/client/chat";
 *     for await (const message of chat("/v1/chat", { message: "Who knows about fonts?" })) {
 *       if (message.type === "text.delta") console.log(message.text);
 *     }
 */
import { VoiceError, gatewayError, parseServerMessage, type ServerMessage } from "./index.js";
import { parseServerSentEvents } from "./sse.js";
import { localTimeZone } from "./timezone.js";

export { parseServerSentEvents, type ServerSentEvent } from "./sse.js";

/** The input of a turn: a message, the answer to a question, or a whole conversation. */
export interface ChatTurn {
  /** The conversation to continue. Without it a new one begins, and `done` contains its id. */
  conversationId?: string | undefined;
  /** The user; default: the client's address. */
  user?: string | undefined;
  agent?: string | undefined;
  message?: string | undefined;
  /** The IANA name of the user's time zone. Default: this machine's; on a server, pass the user's. */
  timeZone?: string | undefined;
  /** Requests an `inspect.call` message for each tool call. The caller needs permission to inspect. */
  inspect?: boolean | undefined;
  /** Answers a confirmation.request; replaces the message. */
  confirmation?: { token: string; approved: boolean } | undefined;
  /** A conversation that the caller stores, ending with the user's message. Replaces all of the above. */
  messages?: readonly { role: "user" | "assistant"; content: string }[] | undefined;
}

/**
 * Runs one turn of the text agent and yields its messages; the last is `done`. Skips messages of unknown
 * types. The turn ends early if the caller stops reading or aborts. Throws a VoiceError: `gateway` if the
 * gateway refuses the turn, `lost` if the stream breaks off.
 *
 * `request` replaces fetch if the gateway requires credentials: it adds the header `authorization` with the
 * user's token.
 */
export async function* chat(url: string | URL, turn: ChatTurn, signal?: AbortSignal, request: typeof fetch = fetch): AsyncGenerator<ServerMessage, void, void> {
  const response = await ask(url, turn, signal, request);
  try {
    for await (const { data } of parseServerSentEvents(response)) {
      const message = parseServerMessage(data);
      if (message !== null) {
        yield message;
      }
      if (message?.type === "done") {
        return;
      }
    }
  } catch (cause) {
    throw cause instanceof VoiceError ? cause : broken(signal, "lost", cause);
  }
  throw broken(signal, "lost", undefined);
}

async function ask(url: string | URL, turn: ChatTurn, signal: AbortSignal | undefined, request: typeof fetch): Promise<ReadableStream<Uint8Array>> {
  const { conversationId, timeZone = localTimeZone(), ...rest } = turn;
  let response: Response;
  try {
    response = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ conversation_id: conversationId, time_zone: timeZone, ...rest }),
      ...(signal && { signal }),
    });
  } catch (cause) {
    throw broken(signal, "unreachable", cause);
  }
  if (!response.ok) {
    throw await refusal(response);
  }
  if (response.body === null || !response.headers.get("content-type")?.startsWith("text/event-stream")) {
    throw new VoiceError("protocol");
  }
  return response.body;
}

function broken(signal: AbortSignal | undefined, code: "lost" | "unreachable", cause: unknown): VoiceError {
  if (signal?.aborted === true) {
    return new VoiceError("aborted", "The answer was stopped.", { advice: "Ask again when you like.", cause });
  }
  return code === "lost"
    ? new VoiceError("lost", "The answer broke off.", { advice: "Check your network, then ask again.", retryable: true, cause })
    : new VoiceError("unreachable", undefined, { retryable: true, cause });
}

/** Returns the gateway's own error, or one for the status if a proxy answered. */
async function refusal(response: Response): Promise<VoiceError> {
  const { status } = response;
  const retryable = status === 409 || status === 429 || status >= 500;
  const said = ((await response.json().catch(() => null)) as { error?: { code?: unknown; message?: unknown; until?: string } } | null)?.error;
  if (typeof said?.code === "string" && typeof said.message === "string") {
    const { code, message, until } = said;
    return gatewayError({ type: "error", seq: 0, code, message, retryable, ...(until !== undefined && { until }) });
  }
  const code = status === 429 || status === 503 ? "full" : status >= 500 ? "unreachable" : "refused";
  return new VoiceError(code, undefined, { retryable, cause: new Error(`HTTP ${status}`) });
}

/**
 * The text agent: one message in, a stream of messages out (POST /v1/chat).
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

/** What is asked of the text agent: a message, the answer to a question, or a conversation of one's own. */
export interface ChatTurn {
  /** The conversation that goes on. Without it one begins, and `done` tells its id. */
  conversationId?: string | undefined;
  /** Who speaks; without it, the address. */
  user?: string | undefined;
  agent?: string | undefined;
  message?: string | undefined;
  /** The IANA name of the user's time zone. Without it, that of this machine: give the user's where this is a server. */
  timeZone?: string | undefined;
  /** Shows everything about each call of a tool, as `inspect.call`, to whoever may look inside. */
  inspect?: boolean | undefined;
  /** Answers a confirmation.request, in place of a message. */
  confirmation?: { token: string; approved: boolean } | undefined;
  /** A whole conversation that the caller keeps, the last message the user's, in place of all that. */
  messages?: readonly { role: "user" | "assistant"; content: string }[] | undefined;
}

/**
 * One turn of the text agent, message by message; the last is `done`. Messages of types that
 * this version does not know are left out. Whoever stops reading, or aborts, ends the turn.
 * Throws a VoiceError: `gateway` where it was refused, `lost` where it broke off.
 *
 * `request` is used instead of fetch, where a gateway lets nobody in without credentials: it adds the header
 * `authorization` with the user's token.
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

/** The gateway's own word, or what can be told from the status where a proxy has answered. */
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

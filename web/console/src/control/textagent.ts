import { VoiceError } from "@voicegw/client";
import { chat, type ChatTurn } from "@voicegw/client/chat";
import type { Told } from "../model/feed.js";

export interface TextHandlers {
  happened(what: Told): void;
  /** A request begins; message is undefined for the answer to a question. */
  asking(message: string | undefined): void;
  /** The request is over. error: why it failed; token: the question that it answered. */
  answered(error: VoiceError | null, token: string | undefined): void;
}

type Answer = Required<ChatTurn>["confirmation"];

/**
 * Sends requests to the text agent one at a time, as the gateway requires. Answers to questions wait in a
 * queue, which never exceeds the open questions.
 */
export class TextAgent {
  private running: AbortController | null = null;
  private waiting: Answer[] = [];

  /** `request` is fetch with the operator's token. */
  constructor(
    private readonly handlers: TextHandlers,
    private readonly request: typeof fetch = fetch,
  ) {}

  get busy(): boolean {
    return this.running !== null;
  }

  /** Sends a message. Returns false while another one is answered. */
  say(conversation: string, message: string): boolean {
    if (this.busy) {
      return false;
    }
    void this.run({ conversationId: conversation, message });
    return true;
  }

  /** Sends the user's answer to a question, now or after the current request. */
  resolve(conversation: string, token: string, approved: boolean): void {
    if (this.busy) {
      this.waiting.push({ token, approved });
    } else {
      void this.run({ conversationId: conversation, confirmation: { token, approved } });
    }
  }

  /** Cancels the current answer. */
  stop(): void {
    this.running?.abort();
  }

  /** A new conversation begins; drops the old one's requests. */
  leave(): void {
    this.waiting = [];
    this.stop();
  }

  private async run(turn: ChatTurn & { conversationId: string }): Promise<void> {
    const running = new AbortController();
    this.running = running;
    this.handlers.asking(turn.message);
    this.tellSent(turn);
    let error: VoiceError | null = null;
    try {
      for await (const message of chat(new URL("v1/chat", document.baseURI), { ...turn, inspect: true }, running.signal, this.request)) {
        this.handlers.happened({ kind: "received", side: "text", message });
      }
    } catch (cause) {
      error = running.signal.aborted ? null : asVoiceError(cause);
    }
    this.running = null;
    this.handlers.answered(error, turn.confirmation?.token);
    const next = this.waiting.shift();
    if (next !== undefined) {
      this.resolve(turn.conversationId, next.token, next.approved);
    }
  }

  private tellSent({ conversationId, message, confirmation }: ChatTurn): void {
    const masked = confirmation === undefined ? {} : { confirmation: { token: "***", approved: confirmation.approved } };
    const said = message === undefined ? masked : { message };
    this.handlers.happened({ kind: "sent", side: "text", message: { type: "chat", conversation_id: conversationId, ...said } });
  }
}

function asVoiceError(cause: unknown): VoiceError {
  return cause instanceof VoiceError ? cause : new VoiceError("lost", undefined, { retryable: true, cause });
}

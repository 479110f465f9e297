import { VoiceError } from "@voicegw/client";
import { chat, type ChatTurn } from "@voicegw/client/chat";
import type { Told } from "../model/feed.js";

/** What the text agent's side tells the console. */
export interface TextHandlers {
  happened(what: Told): void;
  /** A request begins; message is undefined for the answer to a question. */
  asking(message: string | undefined): void;
  /** The request is over; the error is why it failed, token the question that it answered. */
  answered(error: VoiceError | null, token: string | undefined): void;
}

type Answer = Required<ChatTurn>["confirmation"];

/**
 * The conversation with the text agent: one request at a time, as the gateway wants it.
 * Answers to questions wait for their turn; there are never more than open questions.
 */
export class TextAgent {
  private running: AbortController | null = null;
  private waiting: Answer[] = [];

  /** `request` is fetch, with what operators show. */
  constructor(
    private readonly handlers: TextHandlers,
    private readonly request: typeof fetch = fetch,
  ) {}

  get busy(): boolean {
    return this.running !== null;
  }

  /** Sends a message; false while another one is answered. */
  say(conversation: string, message: string): boolean {
    if (this.busy) {
      return false;
    }
    void this.run({ conversationId: conversation, message });
    return true;
  }

  /** The user's answer to a question, now or when the text agent has finished what it says. */
  resolve(conversation: string, token: string, approved: boolean): void {
    if (this.busy) {
      this.waiting.push({ token, approved });
    } else {
      void this.run({ conversationId: conversation, confirmation: { token, approved } });
    }
  }

  /** Gives up the answer that is on its way. */
  stop(): void {
    this.running?.abort();
  }

  /** Another conversation begins: what is on its way or waits is of the old one. */
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

import type { ConfirmationRequest, VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

/** Something that a tool does only if the user approves it. */
export interface Confirmation {
  /** For `key`. It is a secret: it goes into no log and no address. */
  token: string;
  tool: string;
  /** What would be done, in words. Show it with the tool's name and all of the arguments. */
  preview: string;
  /** The exact arguments, as indented JSON. */
  args: string;
  /** When the question ends, in ms since the epoch; NaN where that cannot be told. Offer no answer after it. */
  expiresAt: number;
  /** What the user has answered; null before. The question stays until the gateway has taken it. */
  answer: boolean | null;
  /** Says yes for a person who has pressed something. The first answer counts. */
  approve(): void;
  /** Says no. */
  decline(): void;
}

/** The questions that are open, oldest first. */
class ConfirmationStore extends Store<readonly Confirmation[]> {
  constructor(session: VoiceSession | null) {
    super([]);
    session?.on("confirmation.request", (message) => this.#ask(session, message));
    session?.on("confirmation.ended", ({ token }) => this.set(this.get().filter((c) => c.token !== token)));
    session?.on("error", ({ gatewayCode }) => {
      if (gatewayCode === "store_unavailable") {
        // Nothing was recorded: the same token works again.
        this.set(this.get().map((c) => ({ ...c, answer: null })));
      }
    });
  }

  #ask(session: VoiceSession, { token, tool, preview, args_source, expires_at }: ConfirmationRequest): void {
    const answer = (approved: boolean): void => {
      if (this.get().some((c) => c.token === token && c.answer === null)) {
        this.set(this.get().map((c) => (c.token === token ? { ...c, answer: approved } : c)));
        if (approved) {
          session.approve(token);
        } else {
          session.decline(token);
        }
      }
    };
    const asked = { token, tool, preview: visible(preview), args: visible(args_source), expiresAt: Date.parse(expires_at), answer: null, approve: () => answer(true), decline: () => answer(false) };
    this.set([...this.get().filter((c) => c.token !== token), asked]);
  }
}

const confirmationsOf = perSession((session) => new ConfirmationStore(session), new ConfirmationStore(null));

/** The questions that wait for the user's answer, oldest first. */
export function useConfirmations(session: VoiceSession | null): readonly Confirmation[] {
  return useStore(confirmationsOf(session));
}

// What steers the direction of text, or is not seen at all. The words are a model's: they
// must not be able to make what is approved read like something else.
const UNSEEN = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text with its unseen characters written out, as JSON does. */
function visible(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

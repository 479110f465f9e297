import type { ConfirmationRequest, VoiceSession } from "@voicegw/client";
import { Store, perSession, useStore } from "./store.js";

/** An action of a tool that needs the user's approval. */
export interface Confirmation {
  /** For `key`. A secret: keep it out of logs and URLs. */
  token: string;
  tool: string;
  /** Describes the action. Show it with the tool's name and all arguments. */
  preview: string;
  /** The exact arguments, as indented JSON. */
  args: string;
  /** When the request expires, in ms since the epoch; NaN if unknown. Do not offer an answer after it. */
  expiresAt: number;
  /** The user's answer; null before. The request stays until the gateway has received the answer. */
  answer: boolean | null;
  /** Approves. Call it only from a user's action. The first answer counts. */
  approve(): void;
  /** Declines. */
  decline(): void;
}

/** The open requests, oldest first. */
class ConfirmationStore extends Store<readonly Confirmation[]> {
  constructor(session: VoiceSession | null) {
    super([]);
    session?.on("confirmation.request", (message) => this.#ask(session, message));
    session?.on("confirmation.ended", ({ token }) => this.set(this.get().filter((c) => c.token !== token)));
    session?.on("error", ({ gatewayCode }) => {
      if (gatewayCode === "store_unavailable") {
        // The gateway recorded no answer, so the token is still valid.
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

/** Returns the requests that wait for the user's answer, oldest first. */
export function useConfirmations(session: VoiceSession | null): readonly Confirmation[] {
  return useStore(confirmationsOf(session));
}

// Bidirectional controls and invisible characters. The text comes from a model, which could otherwise disguise
// the action.
const UNSEEN = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes the invisible characters, as JSON does. */
function visible(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

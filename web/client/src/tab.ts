import { voiceUrl } from "./connection/socket.js";
import type { Resume } from "./connection/start.js";
import { Keeper, wishesOf, type Kept } from "./kept.js";
import type { ConnectOptions } from "./options.js";
import type { SessionStarted } from "./protocol/messages.js";

/** How a session stands when it is written down. */
export interface Standing {
  conversation: string;
  leftAt: number | null;
  pressed: boolean;
  /** What was heard of the items that are not over, in ms. */
  heard: [item: string, ms: number][];
}

/** What a tab keeps of one session, and what it has kept of the session of the page before. */
export class Tab {
  readonly #options: ConnectOptions;
  readonly #url: string;
  readonly #keeper: Keeper;
  #taken: Kept | null;

  constructor(options: ConnectOptions) {
    this.#options = options;
    this.#url = addressOf(options);
    this.#keeper = new Keeper(options.keep);
    this.#taken = options.resume === false ? null : this.#keeper.find(options, this.#url);
  }

  /** What the page before has left and this one takes up; null for nothing. */
  get taken(): Kept | null {
    return this.#taken;
  }

  /** Before the number of a typed text: a session that outlives its page must not get an id twice. */
  get prefix(): string {
    return this.#taken === null ? "" : `${this.#taken.pages}-`;
  }

  /** How much of an item was heard on the page before, in ms; undefined where nobody knows. Said once. */
  heardBefore(item: string): number | undefined {
    const at = this.#taken?.heard.findIndex(([name]) => name === item) ?? -1;
    return at < 0 ? undefined : this.#taken!.heard.splice(at, 1)[0]![1];
  }

  /** Writes down what the next page needs; false where that cannot go on with the session. */
  keep(resume: Resume | undefined, now: Standing, started: SessionStarted | null): boolean {
    if (resume === undefined) {
      this.#keeper.clear();
      return false;
    }
    const { conversation, leftAt, pressed, heard } = now;
    return this.#keeper.write({
      sessionId: resume.session_id,
      conversationId: conversation,
      leftAt,
      url: this.#url,
      token: resume.token,
      wishes: this.#taken?.wishes ?? wishesOf(this.#options, conversation, started),
      pages: (this.#taken?.pages ?? 0) + 1,
      pressed,
      heard: [...(this.#taken?.heard ?? []), ...heard],
    });
  }

  /** From here on what is kept is of this session. */
  own(): void {
    this.#keeper.own();
  }

  /** Another session goes on with the conversation. */
  renew(): void {
    this.#taken = null;
  }

  /** The session is over: nothing of it is kept. */
  clear(): void {
    this.#keeper.clear();
  }

  /** It is not needed any more. */
  close(): void {
    this.#keeper.close();
  }
}

/** The gateway's address; empty if it is invalid, which the connection reports. */
function addressOf({ url }: ConnectOptions): string {
  try {
    return voiceUrl(url, document.baseURI).href;
  } catch {
    return "";
  }
}

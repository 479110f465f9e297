import { voiceUrl } from "./connection/socket.js";
import type { Resume } from "./connection/start.js";
import { Keeper, wishesOf, type Kept } from "./kept.js";
import type { ConnectOptions } from "./options.js";
import type { SessionStarted } from "./protocol/messages.js";

/** The state of a session when it is stored. */
export interface Standing {
  conversation: string;
  leftAt: number | null;
  pressed: boolean;
  /** How much of the unfinished items was heard, in ms. */
  heard: [item: string, ms: number][];
}

/** The stored data of one session, and the session that the previous page stored. */
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

  /** The previous page's session, which this one resumes; null if there is none. */
  get taken(): Kept | null {
    return this.#taken;
  }

  /** Prefix for ids of typed texts, so that a session does not repeat an id after a reload. */
  get prefix(): string {
    return this.#taken === null ? "" : `${this.#taken.pages}-`;
  }

  /**
   * How much of an item the user heard on the previous page, in ms; undefined if unknown. Each item is
   * returned once.
   */
  heardBefore(item: string): number | undefined {
    const at = this.#taken?.heard.findIndex(([name]) => name === item) ?? -1;
    return at < 0 ? undefined : this.#taken!.heard.splice(at, 1)[0]![1];
  }

  /** Stores the session for the next page. Returns false if it cannot be resumed. */
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

  /** Takes over the entry for this session. */
  own(): void {
    this.#keeper.own();
  }

  /** A new session continues the conversation. */
  renew(): void {
    this.#taken = null;
  }

  /** Deletes the entry because the session is over. */
  clear(): void {
    this.#keeper.clear();
  }

  /** Releases the entry's name. */
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

// What a tab keeps of a session, so that it goes on when the page is loaded again.
import type { ConnectOptions } from "./options.js";
import type { SessionStarted } from "./protocol/messages.js";

/** Everything in it is small; a gateway that says more than that is not believed. */
const MAX_LENGTH = 8192;
/** So many unfinished items are kept, the newest. */
const MAX_ITEMS = 8;

const DEFAULT_NAME = "session";

/** A session that this tab had before its page was loaded again. */
export interface KeptSession {
  sessionId: string;
  conversationId: string;
  /**
   * When its page went, in ms since the epoch. null: nobody has seen it go. It has crashed, or
   * this tab is a copy of one that is still there: taking the session up ends the call there.
   */
  leftAt: number | null;
}

/** All that is kept. The token opens the session: it goes into no log. */
export interface Kept extends KeptSession {
  /** The gateway's address: the token is for no other one. */
  url: string;
  token: string;
  /** What the session was opened with, as far as the options of the next page may contradict it. */
  wishes: Wishes;
  /** How many pages have had it: each numbers its typed texts anew. */
  pages: number;
  /** Push-to-talk: what the gateway was told last. */
  pressed: boolean;
  /** How much of each unfinished item was heard, in ms. */
  heard: [item: string, ms: number][];
}

/** What can be wished for a session, by its place in the options; undefined: nothing was. */
type Wishes = (string | number | undefined)[];

/** Names that sessions of this page use now: a second one must not take up the first one's. */
const inUse = new Set<string>();

/**
 * What this tab has kept of a session whose page was loaded again, to be taken up by the next
 * connect; null for nothing. `name` is the option `keep`. Whether the gateway still has the
 * session is known only when it is taken up.
 */
export function keptSession(name: string = DEFAULT_NAME): KeptSession | null {
  const kept = inUse.has(name) ? null : read(name);
  return kept === null ? null : { sessionId: kept.sessionId, conversationId: kept.conversationId, leftAt: kept.leftAt };
}

/** One session's place in the tab's sessionStorage. */
export class Keeper {
  readonly #name: string | undefined;
  /** What is written down may be changed and cleared: it is of this session. */
  #owned = false;

  /** Keeps nothing where the option says so, or another session of the page has the name. */
  constructor(keep: string | false | undefined) {
    const name = keep === false || inUse.has(keep ?? DEFAULT_NAME) ? undefined : (keep ?? DEFAULT_NAME);
    this.#name = name;
    if (name !== undefined) {
      inUse.add(name);
    }
  }

  /** What the page before has left and these options do not contradict; null for nothing. */
  find(options: ConnectOptions, url: string): Kept | null {
    const kept = this.#name === undefined ? null : read(this.#name);
    return kept !== null && kept.url === url && agree(wishesOf(options), kept.wishes) ? kept : null;
  }

  /** From here on what is kept is of this session. */
  own(): void {
    this.#owned = true;
  }

  /** Writes it down; false where nothing can be kept. */
  write(kept: Kept): boolean {
    if (this.#name === undefined) {
      return false;
    }
    const text = JSON.stringify({ ...kept, heard: kept.heard.slice(-MAX_ITEMS) });
    try {
      if (text.length <= MAX_LENGTH) {
        sessionStorage.setItem(place(this.#name), text);
        return true;
      }
    } catch {
      // The browser keeps nothing for this page: the session ends with it.
    }
    this.clear();
    return false;
  }

  /** The session is over: nothing of it is kept. What another one has left stays. */
  clear(): void {
    if (this.#name !== undefined && this.#owned) {
      remove(this.#name);
    }
  }

  /** Gives the name free. */
  close(): void {
    if (this.#name !== undefined) {
      inUse.delete(this.#name);
    }
  }
}

/**
 * What these options ask of a session; once it is started, what was left open in them is as
 * the gateway has said. A ticket is a secret: its hash is enough to know it again.
 */
export function wishesOf(o: ConnectOptions, conversation = o.conversationId, started: SessionStarted | null = null): Wishes {
  const ticket = typeof o.ticket === "string" ? hash(o.ticket) : undefined;
  const settled = [o.provider ?? started?.provider, o.agent ?? started?.agent, o.voice ?? started?.voice];
  return [o.inputRate ?? 16000, o.outputRate ?? 24000, o.turnDetection ?? "server", ticket, conversation, ...settled, o.pendingRequest];
}

/** Whether a session that was opened with `then` may be given to somebody who wishes `now`. */
function agree(now: Wishes, then: Wishes): boolean {
  return now.every((wish, i) => wish === undefined || wish === then[i]);
}

function read(name: string): Kept | null {
  try {
    const text = sessionStorage.getItem(place(name));
    const value: unknown = JSON.parse(text ?? "null");
    if (isKept(value)) {
      return value;
    }
    if (text !== null) {
      remove(name);
    }
  } catch {
    remove(name);
  }
  return null;
}

function isKept(value: unknown): value is Kept {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const kept = value as Partial<Record<keyof Kept, unknown>>;
  return (
    [kept.sessionId, kept.conversationId, kept.url, kept.token].every((text) => typeof text === "string") &&
    (kept.leftAt === null || typeof kept.leftAt === "number") &&
    typeof kept.pages === "number" &&
    typeof kept.pressed === "boolean" &&
    Array.isArray(kept.wishes) &&
    Array.isArray(kept.heard) &&
    kept.heard.every((entry) => Array.isArray(entry) && typeof entry[0] === "string" && typeof entry[1] === "number")
  );
}

function remove(name: string): void {
  try {
    sessionStorage.removeItem(place(name));
  } catch {
    // Nothing is kept there.
  }
}

function place(name: string): string {
  return `voicegw.session.${name}`;
}

/** FNV-1a, 32 bits: tells two tickets apart and gives neither away. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  }
  return sum >>> 0;
}

// Stores a session in the tab, so that it continues after the page reloads.
import type { ConnectOptions } from "./options.js";
import type { SessionStarted } from "./protocol/messages.js";

/** Limit for stored data, which is small unless a gateway misbehaves. */
const MAX_LENGTH = 8192;
/** The most unfinished items stored, newest first. */
const MAX_ITEMS = 8;

const DEFAULT_NAME = "session";

/** A session of this tab from before the page was reloaded. */
export interface KeptSession {
  sessionId: string;
  conversationId: string;
  /**
   * When the page closed, in ms since the epoch. null if it crashed or this tab is a copy of one that is
   * still open; resuming the session would end the call there.
   */
  leftAt: number | null;
}

/** The stored data. The token gives access to the session, so never log it. */
export interface Kept extends KeptSession {
  /** The gateway's address; the token is valid only there. */
  url: string;
  token: string;
  /** The session's options, to compare with those of the next page. */
  wishes: Wishes;
  /** The number of pages so far, because each numbers its typed texts anew. */
  pages: number;
  /** Push-to-talk: the state last sent to the gateway. */
  pressed: boolean;
  /** How much of each unfinished item was heard, in ms. */
  heard: [item: string, ms: number][];
}

/** Options of a session in a fixed order; undefined: not set. */
type Wishes = (string | number | undefined)[];

/** Names in use on this page. A second session must not resume the first one's. */
const inUse = new Set<string>();

/**
 * Returns the session that this tab stored before the page was reloaded, which the next connect resumes; null
 * if there is none. `name` is the option `keep`. Only resuming shows whether the gateway still has the
 * session.
 */
export function keptSession(name: string = DEFAULT_NAME): KeptSession | null {
  const kept = inUse.has(name) ? null : read(name);
  return kept === null ? null : { sessionId: kept.sessionId, conversationId: kept.conversationId, leftAt: kept.leftAt };
}

/** One session's entry in the tab's sessionStorage. */
export class Keeper {
  readonly #name: string | undefined;
  /** The entry belongs to this session, so it may be changed and deleted. */
  #owned = false;

  /** Stores nothing if the option is false or another session of the page uses the name. */
  constructor(keep: string | false | undefined) {
    const name = keep === false || inUse.has(keep ?? DEFAULT_NAME) ? undefined : (keep ?? DEFAULT_NAME);
    this.#name = name;
    if (name !== undefined) {
      inUse.add(name);
    }
  }

  /** Returns the stored session if it fits these options; otherwise null. */
  find(options: ConnectOptions, url: string): Kept | null {
    const kept = this.#name === undefined ? null : read(this.#name);
    return kept !== null && kept.url === url && agree(wishesOf(options), kept.wishes) ? kept : null;
  }

  /** Takes over the entry for this session. */
  own(): void {
    this.#owned = true;
  }

  /** Writes the entry. Returns false if nothing can be stored. */
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
      // The browser stores nothing for this page, so the session ends with it.
    }
    this.clear();
    return false;
  }

  /** Deletes the entry if it belongs to this session. */
  clear(): void {
    if (this.#name !== undefined && this.#owned) {
      remove(this.#name);
    }
  }

  /** Releases the name. */
  close(): void {
    if (this.#name !== undefined) {
      inUse.delete(this.#name);
    }
  }
}

/**
 * Returns the options that identify a session. Once it has started, unset options have the gateway's values.
 * A ticket is a secret, so only its hash is stored.
 */
export function wishesOf(o: ConnectOptions, conversation = o.conversationId, started: SessionStarted | null = null): Wishes {
  const ticket = typeof o.ticket === "string" ? hash(o.ticket) : undefined;
  const settled = [o.provider ?? started?.provider, o.agent ?? started?.agent, o.voice ?? started?.voice];
  return [o.inputRate ?? 16000, o.outputRate ?? 24000, o.turnDetection ?? "server", ticket, conversation, ...settled, o.pendingRequest];
}

/** Whether a session opened with `then` satisfies the options `now`. */
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
    // Storage is not available.
  }
}

function place(name: string): string {
  return `voicegw.session.${name}`;
}

/** FNV-1a, 32 bits: enough to compare two tickets without storing them. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  }
  return sum >>> 0;
}

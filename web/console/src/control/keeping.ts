// What is kept over reloads: settings in this browser, the conversation in this tab. A
// browser may keep nothing for a page; then it forgets, and works all the same.
import { readSettings, type Settings } from "../model/settings.js";

const SETTINGS = "voicegw.settings";
const CONVERSATION = "voicegw.conversation";

export function keptSettings(): Settings {
  return readSettings(attempt(() => localStorage.getItem(SETTINGS)));
}

export function keepSettings(settings: Settings): void {
  attempt(() => localStorage.setItem(SETTINGS, JSON.stringify(settings)));
}

/** The conversation of this tab before it was loaded again; null for none. */
export function keptConversation(): string | null {
  const id = attempt(() => sessionStorage.getItem(CONVERSATION));
  return id !== null && /^[\w.-]{1,128}$/.test(id) ? id : null;
}

/** A name for another conversation, which nobody can guess. crypto.randomUUID needs a secure address. */
export function newConversation(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

export function keepConversation(id: string): void {
  attempt(() => sessionStorage.setItem(CONVERSATION, id));
}

export function forgetConversation(): void {
  attempt(() => sessionStorage.removeItem(CONVERSATION));
}

function attempt<T>(deed: () => T): T | null {
  try {
    return deed();
  } catch {
    return null;
  }
}

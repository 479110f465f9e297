// What is kept over reloads: settings in this browser, the conversation and the call in this
// tab. A browser may keep nothing for a page; then it forgets, and works all the same.
import type { Standing } from "../model/conversation.js";
import { linesToKeep, readLines } from "../model/keptlines.js";
import { addressed, readSettings, type Settings } from "../model/settings.js";
import { fields, number } from "../model/shape.js";
import type { CallLength } from "../model/voice.js";

const SETTINGS = "voicegw.settings";
const CONVERSATION = "voicegw.conversation";
const CALL = "voicegw.call";
const INSTRUMENTS = "voicegw.instruments";

/** Those of the last visit; what the page's address sets comes first. */
export function keptSettings(): Settings {
  return { ...readSettings(attempt(() => localStorage.getItem(SETTINGS))), ...addressed(location.search) };
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

/** A call in which the page is loaded again, as far as the client library does not keep it. */
export interface KeptCall extends Standing {
  /** What the user has done with the microphone: a muted one must not be heard after a reload. */
  readonly microphone: "on" | "muted" | "off";
  /** How many turns the earlier sessions of the call had: see TurnCount. */
  readonly turnsBefore: number;
  /** What must be as it was; the rest is the session's already. */
  readonly settings: Pick<Settings, "inputRate" | "outputRate" | "turns">;
}

export function keepCall(call: KeptCall): void {
  attempt(() => sessionStorage.setItem(CALL, JSON.stringify({ ...call, lines: linesToKeep(call.lines) })));
}

/** What the page before has kept of its call; null for nothing. It is kept no more. */
export function takeCall(): KeptCall | null {
  const value = attempt(() => JSON.parse(sessionStorage.getItem(CALL) ?? "null") as Partial<Record<keyof KeptCall, unknown>> | null) ?? null;
  attempt(() => sessionStorage.removeItem(CALL));
  const { microphone, source } = value ?? {};
  if (typeof source !== "string" || (microphone !== "on" && microphone !== "muted" && microphone !== "off")) {
    return null;
  }
  const { inputRate, outputRate, turns } = readSettings(JSON.stringify(value?.settings));
  return { microphone, source, settings: { inputRate, outputRate, turns }, turnsBefore: number(value?.turnsBefore), lines: readLines(value?.lines, source), length: readLength(value?.length) };
}

/** What the instruments show of a call in which the page is loaded again. */
export function keepInstruments(kept: string): void {
  attempt(() => sessionStorage.setItem(INSTRUMENTS, kept));
}

/** What the page before has kept of its instruments; null for nothing. It is kept no more. */
export function takeInstruments(): string | null {
  const kept = attempt(() => sessionStorage.getItem(INSTRUMENTS));
  attempt(() => sessionStorage.removeItem(INSTRUMENTS));
  return kept;
}

function readLength(value: unknown): CallLength {
  const { began, turns, turn } = fields(value);
  return { began: typeof began === "number" ? began : null, turns: number(turns), turn: typeof turn === "number" ? turn : undefined };
}

function attempt<T>(deed: () => T): T | null {
  try {
    return deed();
  } catch {
    return null;
  }
}

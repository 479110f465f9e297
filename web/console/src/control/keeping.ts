// Data stored across reloads: settings in the browser, the conversation and the call in the tab. If the
// browser stores nothing, the page works without it.
import type { Standing } from "../model/conversation.js";
import { linesToKeep, readLines } from "../model/keptlines.js";
import { addressed, readSettings, type Settings } from "../model/settings.js";
import { fields, number } from "../model/shape.js";
import type { CallLength } from "../model/voice.js";

const SETTINGS = "voicegw.settings";
const CONVERSATION = "voicegw.conversation";
const CALL = "voicegw.call";
const INSTRUMENTS = "voicegw.instruments";

/** The settings of the last visit, overridden by the page's address. */
export function keptSettings(): Settings {
  return { ...readSettings(attempt(() => localStorage.getItem(SETTINGS))), ...addressed(location.search) };
}

export function keepSettings(settings: Settings): void {
  attempt(() => localStorage.setItem(SETTINGS, JSON.stringify(settings)));
}

/** This tab's conversation from before a reload; null without one. */
export function keptConversation(): string | null {
  const id = attempt(() => sessionStorage.getItem(CONVERSATION));
  return id !== null && /^[\w.-]{1,128}$/.test(id) ? id : null;
}

/** An unguessable id for a new conversation. crypto.randomUUID needs a secure address. */
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

/** The parts of a call that the client library does not store across a reload. */
export interface KeptCall extends Standing {
  /** The microphone's state, so that a muted one stays muted after a reload. */
  readonly microphone: "on" | "muted" | "off";
  /** The number of turns in the call's earlier sessions; see TurnCount. */
  readonly turnsBefore: number;
  /** Settings that must not change; the session stores the others. */
  readonly settings: Pick<Settings, "inputRate" | "outputRate" | "turns">;
}

export function keepCall(call: KeptCall): void {
  attempt(() => sessionStorage.setItem(CALL, JSON.stringify({ ...call, lines: linesToKeep(call.lines) })));
}

/** Returns and removes the previous page's call; null without one. */
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

/** Stores the contents of the instruments when the page reloads during a call. */
export function keepInstruments(kept: string): void {
  attempt(() => sessionStorage.setItem(INSTRUMENTS, kept));
}

/** Returns and removes the previous page's instruments; null without any. */
export function takeInstruments(): string | null {
  const kept = attempt(() => sessionStorage.getItem(INSTRUMENTS));
  attempt(() => sessionStorage.removeItem(INSTRUMENTS));
  return kept;
}

function readLength(value: unknown): CallLength {
  const { began, turns, turn } = fields(value);
  return { began: typeof began === "number" ? began : null, turns: number(turns), turn: typeof turn === "number" ? turn : undefined };
}

function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}

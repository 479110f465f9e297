// What the user has chosen. It is kept over reloads, so what is read may be of an older
// version, or anything: each field is checked by itself.
import type { InputRate, OutputRate } from "@voicegw/client";

/** How the page looks. */
export type Theme = "system" | "light" | "dark";

/** What is read out to those who do not see the page, beside what is written to them. */
export type ReadOut = "unheard" | "all";

export interface Settings {
  /** Empty: the gateway's default. */
  provider: string;
  agent: string;
  voice: string;
  /** Asked by voice first of all, once; empty for nothing. */
  pendingRequest: string;
  /** How the end of a turn is known: by the model, or by the button. */
  turns: "automatic" | "pushToTalk";
  /** In Hz. */
  inputRate: InputRate;
  outputRate: OutputRate;
  /** Empty: the browser's default. */
  microphone: string;
  speaker: string;
  /** Of the model's voice, from 0 to 1. */
  volume: number;
  echoCancellation: boolean;
  noiseSuppression: boolean;
  theme: Theme;
  readOut: ReadOut;
  /** Single keys do something where no field has the focus. */
  shortcuts: boolean;
}

export const INPUT_RATES: readonly InputRate[] = [8000, 16000, 24000, 44100, 48000];
export const OUTPUT_RATES: readonly OutputRate[] = [8000, 16000, 24000, 48000];

export const DEFAULTS: Readonly<Settings> = {
  provider: "",
  agent: "",
  voice: "",
  pendingRequest: "",
  turns: "automatic",
  inputRate: 16000,
  outputRate: 24000,
  microphone: "",
  speaker: "",
  volume: 1,
  echoCancellation: true,
  noiseSuppression: true,
  theme: "system",
  readOut: "unheard",
  shortcuts: true,
};

const CHOICES: { readonly [K in keyof Settings]?: readonly unknown[] } = {
  turns: ["automatic", "pushToTalk"],
  inputRate: INPUT_RATES,
  outputRate: OUTPUT_RATES,
  theme: ["system", "light", "dark"],
  readOut: ["unheard", "all"],
};

/** Settings from what was kept; the default for whatever is not there or not possible. */
export function readSettings(kept: string | null): Settings {
  const found = parse(kept);
  const settings: Record<string, unknown> = { ...DEFAULTS };
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const value = found[name];
    if (possible(name as keyof Settings, value, fallback)) {
      settings[name] = value;
    }
  }
  return settings as unknown as Settings;
}

function possible(name: keyof Settings, value: unknown, fallback: unknown): boolean {
  const choices = CHOICES[name];
  if (choices !== undefined) {
    return choices.includes(value);
  }
  return typeof value === typeof fallback && (typeof value !== "number" || (value >= 0 && value <= 1));
}

/**
 * What an address may set. Devices have other names on each machine, and a first question is asked aloud: whoever
 * makes a link must not ask for whoever follows it.
 */
const ADDRESSED = ["provider", "agent", "voice", "turns", "inputRate", "outputRate", "echoCancellation", "noiseSuppression", "theme", "readOut", "shortcuts"] as const satisfies readonly (keyof Settings)[];

/** The settings that an address names (location.search); what it cannot name, or names wrongly, is left out. */
export function addressed(search: string): Partial<Settings> {
  const named = new URLSearchParams(search);
  const found: Record<string, unknown> = {};
  for (const name of ADDRESSED) {
    const text = named.get(name);
    const fallback = DEFAULTS[name];
    const value = text === null || typeof fallback === "string" ? text : typeof fallback === "number" ? Number(text) : text === "true" ? true : text === "false" ? false : text;
    if (text !== null && text.length <= 200 && possible(name, value, fallback)) {
      found[name] = value;
    }
  }
  return found as Partial<Settings>;
}

/** A query for an address that sets the same; empty where all is as it is by default. */
export function asQuery(settings: Settings): string {
  const different = ADDRESSED.filter((name) => settings[name] !== DEFAULTS[name]);
  const query = new URLSearchParams(different.map((name) => [name, String(settings[name])])).toString();
  return query === "" ? "" : `?${query}`;
}

function parse(kept: string | null): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(kept ?? "");
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

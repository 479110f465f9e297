// The user's settings. They are stored across reloads, so the stored data may be old or invalid; each field
// is checked.
import type { InputRate, OutputRate } from "@voicegw/client";

/** The page's appearance. */
export type Theme = "system" | "light" | "dark";

/** What screen readers announce of the conversation. */
export type ReadOut = "unheard" | "all";

export interface Settings {
  /** Empty: the gateway's default. */
  provider: string;
  agent: string;
  voice: string;
  /** The first question by voice, asked once; empty for none. */
  pendingRequest: string;
  /** How the end of a turn is detected: by the model or the button. */
  turns: "automatic" | "pushToTalk";
  /** In Hz. */
  inputRate: InputRate;
  outputRate: OutputRate;
  /** Empty: the browser's default. */
  microphone: string;
  speaker: string;
  /** The model's volume, from 0 to 1. */
  volume: number;
  echoCancellation: boolean;
  noiseSuppression: boolean;
  theme: Theme;
  readOut: ReadOut;
  /** Single-key shortcuts work while no field has the focus. */
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

/** Parses stored settings; missing or invalid ones get their default. */
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
 * The settings that an address can contain. Device names differ per machine, and a first question is asked
 * aloud, so a link must not contain it.
 */
const ADDRESSED = ["provider", "agent", "voice", "turns", "inputRate", "outputRate", "echoCancellation", "noiseSuppression", "theme", "readOut", "shortcuts"] as const satisfies readonly (keyof Settings)[];

/** Parses the settings in an address (location.search); unknown and invalid ones are ignored. */
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

/** Returns the query for an address with these settings; empty for the defaults. */
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

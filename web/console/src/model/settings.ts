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
    const choices = CHOICES[name as keyof Settings];
    if (choices === undefined ? typeof value === typeof fallback : choices.includes(value)) {
      settings[name] = value;
    }
  }
  return settings as unknown as Settings;
}

function parse(kept: string | null): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(kept ?? "");
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

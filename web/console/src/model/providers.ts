// The gateway's choices (GET /v1/providers).
import { fields, list, strings, text, type Fields } from "./shape.js";

/** A provider of voice models. */
export interface Provider {
  name: string;
  /** Empty if unknown. */
  model: string;
  /** The documented voices; empty if unknown. */
  voices: readonly string[];
  /** The default voice; empty for the model's own. */
  voice: string;
  /** The simulator replaces it. */
  simulated: boolean;
}

export interface Offer {
  /** The default provider. */
  default: string;
  providers: readonly Provider[];
  agents: readonly string[];
  /** Whether there is a text agent. */
  textAgent: boolean;
  simulator: boolean;
}

/** Parses the choices; null for another shape. Absent choices are not offered. */
export function readOffer(value: unknown): Offer | null {
  const answer = fields(value);
  const providers = list(answer["providers"]).flatMap((entry) => readProvider(fields(entry)));
  const first = providers[0];
  if (first === undefined) {
    return null;
  }
  return {
    default: text(answer["default"]) || first.name,
    providers,
    agents: strings(answer["agents"]),
    textAgent: answer["text_agent"] !== false,
    simulator: answer["simulator"] === true || providers.some((p) => p.simulated),
  };
}

function readProvider(entry: Fields): Provider[] {
  const name = text(entry["name"]);
  if (name === "") {
    return [];
  }
  return [{ name, model: text(entry["model"]), voices: strings(entry["voices"]), voice: text(entry["voice"]), simulated: entry["simulated"] === true }];
}

/** The provider that a call would use: the chosen one if it still exists, otherwise the default. */
export function chosen(offer: Offer | null, name: string): Provider | undefined {
  const find = (wanted: string): Provider | undefined => offer?.providers.find((p) => p.name === wanted);
  return find(name) ?? find(offer?.default ?? "") ?? offer?.providers[0];
}

// What the gateway offers to choose from (GET /v1/providers).
import { fields, list, strings, text, type Fields } from "./shape.js";

/** One way to a voice model. */
export interface Provider {
  name: string;
  /** Empty where the gateway does not tell. */
  model: string;
  /** What its documentation lists; empty where that is not known. */
  voices: readonly string[];
  /** The one that is used when none is chosen; empty for the model's own. */
  voice: string;
  /** The simulator stands in for it. */
  simulated: boolean;
}

export interface Offer {
  /** The provider that is used when none is chosen. */
  default: string;
  providers: readonly Provider[];
  agents: readonly string[];
  /** Whether there is a text agent. */
  textAgent: boolean;
  simulator: boolean;
}

/** Checks the shape of an answer; null for another one. What is absent is not offered. */
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

/** The provider that a call would use: the chosen one, if it is still there, else the default. */
export function chosen(offer: Offer | null, name: string): Provider | undefined {
  const find = (wanted: string): Provider | undefined => offer?.providers.find((p) => p.name === wanted);
  return find(name) ?? find(offer?.default ?? "") ?? offer?.providers[0];
}

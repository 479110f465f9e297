// What the page asks the gateway over plain HTTP.

/** One way to a model, as GET /v1/providers lists it. */
export interface Provider {
  name: string;
  model: string;
}

export interface Providers {
  default: string;
  providers: Provider[];
}

/** The providers to choose from; null when the gateway does not tell. */
export async function listProviders(): Promise<Providers | null> {
  try {
    const response = await fetch("v1/providers", { headers: { accept: "application/json" } });
    if (!response.ok) {
      return null;
    }
    return readProviders(await response.json());
  } catch {
    return null;
  }
}

/** Checks the shape of an answer; null for another one. */
export function readProviders(value: unknown): Providers | null {
  const answer = value as { default?: unknown; providers?: unknown } | null;
  if (typeof answer?.default !== "string" || !Array.isArray(answer.providers)) {
    return null;
  }
  const providers: Provider[] = [];
  for (const entry of answer.providers as { name?: unknown; model?: unknown }[]) {
    if (typeof entry?.name === "string") {
      providers.push({ name: entry.name, model: typeof entry.model === "string" ? entry.model : "" });
    }
  }
  return providers.length === 0 ? null : { default: answer.default, providers };
}

/**
 * Why a WebSocket did not open. Browsers keep the status of a refused
 * handshake from the page, so the gateway is asked how it is.
 */
export async function whyUnopened(): Promise<"unreachable" | "leaving" | "refused"> {
  try {
    const response = await fetch("readyz", { cache: "no-store" });
    return response.status === 503 ? "leaving" : "refused";
  } catch {
    return "unreachable";
  }
}

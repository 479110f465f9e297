// The page's HTTP requests to the gateway.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { readOffer, type Offer } from "../model/providers.js";
import { ask } from "./ask.js";

/** Loads the choices; null without an answer. */
export async function askOffer(request: typeof fetch): Promise<Offer | null> {
  return readOffer((await ask(request, "v1/providers")).answer);
}

/**
 * Loads a conversation without one of its sessions; null without an answer. Only operators may see it;
 * `request` sends their token if the page has one.
 */
export async function askHistory(conversation: string, request: typeof fetch, except?: string): Promise<readonly Line[] | null> {
  const { status, answer } = await ask(request, `v1/conversations/${encodeURIComponent(conversation)}`);
  if (status === 200) {
    return recalled(answer, except);
  }
  return status === 404 ? [] : null;
}

/** Asks whether the gateway accepts new sessions. */
export async function askReady(): Promise<"ready" | "leaving" | "unreachable"> {
  try {
    const response = await fetch("readyz", { cache: "no-store" });
    return response.status === 503 ? "leaving" : "ready";
  } catch {
    return "unreachable";
  }
}

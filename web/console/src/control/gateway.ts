// What the page asks the gateway over plain HTTP.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { readOffer, type Offer } from "../model/providers.js";
import { ask } from "./ask.js";

/** What there is to choose from; null where the gateway does not tell. */
export async function askOffer(request: typeof fetch): Promise<Offer | null> {
  return readOffer((await ask(request, "v1/providers")).answer);
}

/**
 * What was said in a conversation but for one session of it, if anything was; null where the gateway does not tell:
 * only operators may see it, and `request` asks as one where the page may.
 */
export async function askHistory(conversation: string, request: typeof fetch, except?: string): Promise<readonly Line[] | null> {
  const { status, answer } = await ask(request, `v1/conversations/${encodeURIComponent(conversation)}`);
  if (status === 200) {
    return recalled(answer, except);
  }
  return status === 404 ? [] : null;
}

/** Whether the gateway takes new sessions. */
export async function askReady(): Promise<"ready" | "leaving" | "unreachable"> {
  try {
    const response = await fetch("readyz", { cache: "no-store" });
    return response.status === 503 ? "leaving" : "ready";
  } catch {
    return "unreachable";
  }
}

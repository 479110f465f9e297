// What the page asks the gateway over plain HTTP.
import { recalled } from "../model/history.js";
import type { Line } from "../model/lines.js";
import { readOffer, type Offer } from "../model/providers.js";

/** What there is to choose from; null where the gateway does not tell. */
export async function askOffer(request: typeof fetch): Promise<Offer | null> {
  return readOffer((await get("v1/providers", request)).answer);
}

/**
 * What was said in a conversation but for one session of it, if anything was; null where the gateway does not tell:
 * only operators may see it, and `request` asks as one where the page may.
 */
export async function askHistory(conversation: string, request: typeof fetch, except?: string): Promise<readonly Line[] | null> {
  const { status, answer } = await get(`v1/conversations/${encodeURIComponent(conversation)}`, request);
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

/** status is 0 where there is no answer. */
async function get(path: string, request: typeof fetch = fetch): Promise<{ status: number; answer: unknown }> {
  try {
    const response = await request(path, { headers: { accept: "application/json" }, cache: "no-store" });
    return { status: response.status, answer: await response.json() };
  } catch {
    return { status: 0, answer: null };
  }
}

// Sends one HTTP request to the gateway and parses its JSON.

export interface Answer {
  /** 0 without an answer. */
  status: number;
  /** Null without an answer or for an empty one. */
  answer: unknown;
  /** The ETag; empty without one. */
  tag: string;
}

/** Shown without an answer. */
export const UNREACHABLE = "The gateway cannot be reached. Try again.";

export async function ask(request: typeof fetch, to: string, init: RequestInit = {}): Promise<Answer> {
  try {
    const response = await request(to, { cache: "no-store", ...init });
    const answer: unknown = response.status === 204 ? null : await response.json();
    return { status: response.status, answer, tag: response.headers.get("etag") ?? "" };
  } catch {
    return { status: 0, answer: null, tag: "" };
  }
}

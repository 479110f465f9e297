// One question to the gateway over plain HTTP, whose answer is JSON.

export interface Answer {
  /** 0 where there is no answer. */
  status: number;
  /** Null for no answer and for an empty one. */
  answer: unknown;
  /** The ETag; empty without one. */
  tag: string;
}

/** What is said where there is no answer. */
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

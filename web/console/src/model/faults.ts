// Makes the simulator behind the gateway commit a fault, where there is one.
import { signal } from "@preact/signals";

/** One that can be committed. `for`: it takes a duration, for_ms where nobody says another. */
export interface Fault {
  readonly do: string;
  readonly label: string;
  readonly for: boolean;
  readonly for_ms?: number;
}

/** One that was asked for. */
export interface Committed {
  readonly number: number;
  readonly wall: number;
  readonly fault: Fault;
  readonly forMs: number | undefined;
  /** asking: the gateway has not answered. failed: it refused, `why` says why. */
  readonly result: "asking" | "now" | "next_call" | "failed";
  readonly why: string;
}

const MAX_COMMITTED = 50;

/** The gateway's /v1/simulator. Addresses are relative to the page. */
export class Faults {
  /** Null where no simulator is behind the gateway, or nobody may ask it. */
  readonly list = signal<readonly Fault[] | null>(null);
  /** Newest first. */
  readonly committed = signal<readonly Committed[]>([]);
  private numbers = 0;

  constructor(private readonly request: typeof fetch = (...args) => fetch(...args)) {}

  /** Asks what can be committed. */
  async load(): Promise<void> {
    try {
      const response = await this.request("v1/simulator");
      const answer = response.ok ? ((await response.json()) as { faults?: unknown }) : {};
      this.list.value = Array.isArray(answer.faults) ? answer.faults.filter(isFault) : null;
    } catch {
      this.list.value = null;
    }
  }

  /** Commits one in the connection of a session to its provider. */
  async commit(fault: Fault, sessionId: string, forMs?: number): Promise<void> {
    const number = ++this.numbers;
    const asked: Committed = { number, wall: Date.now(), fault, forMs: fault.for ? forMs : undefined, result: "asking", why: "" };
    this.committed.value = [asked, ...this.committed.value].slice(0, MAX_COMMITTED);
    const done = await this.post(fault, sessionId, asked.forMs);
    this.committed.value = this.committed.value.map((known) => (known.number === number ? { ...known, ...done } : known));
  }

  private async post(fault: Fault, sessionId: string, forMs: number | undefined): Promise<Pick<Committed, "result" | "why">> {
    try {
      const response = await this.request("v1/simulator/faults", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ session_id: sessionId, do: fault.do, ...(forMs === undefined ? {} : { for_ms: forMs }) }),
      });
      const answer = (await response.json()) as { when?: string; error?: { message?: string } };
      if (!response.ok) {
        return { result: "failed", why: answer.error?.message ?? `HTTP ${response.status}` };
      }
      return { result: answer.when === "next_call" ? "next_call" : "now", why: "" };
    } catch (error) {
      return { result: "failed", why: error instanceof Error ? error.message : String(error) };
    }
  }
}

function isFault(value: unknown): value is Fault {
  const fault = value as Partial<Fault> | null;
  return typeof fault?.do === "string" && typeof fault.label === "string";
}

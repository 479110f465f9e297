// Runs the page's tools for the agent.
import type { ServerMessage, ToolCallMessage, ToolDeclaration, ToolFailure, ToolResult } from "./protocol/messages.js";

/** The gateway rejects longer answers: docs/protocol.md. */
const LONGEST = 16_384;
/** The most characters of an exception that are sent. */
const LONGEST_ERROR = 2000;

/** A tool that the page runs for the agent; see the option `tools`. */
export interface ClientTool {
  /** Describes to the model what the tool does and when to call it. At most 1024 characters. */
  description: string;
  /**
   * JSON Schema of the arguments: an object with `additionalProperties: false`. Without it the tool takes
   * none.
   */
  schema?: object;
  /** The tool changes nothing, so a call may run again after the page reloads. */
  readOnly?: boolean;
  /** The longest duration of a call, at most 60000 ms. Default 10000. */
  timeoutMs?: number;
  /**
   * Runs a call. The arguments fit the schema, with defaults filled in. The result, or the promise's, is the
   * answer: any JSON of at most 16 KiB. An exception is a failure, whose `message` the model reads;
   * `retryable: true` on it means that the same call may succeed later, `partial: true` that something may
   * have changed. `signal` aborts when the gateway no longer waits for the answer.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the schema says what it is
  run(args: any, call: { id: string; signal: AbortSignal }): unknown;
}

/** Tools by name. */
export type ClientTools = Record<string, ClientTool>;

/** The declarations for session.start. Undefined fields are not sent. */
export function declarations(tools: ClientTools | undefined): ToolDeclaration[] | undefined {
  return tools && Object.entries(tools).map(([name, t]) => ({ name, description: t.description, schema: t.schema, read_only: t.readOnly, timeout_ms: t.timeoutMs }));
}

interface Open {
  stop: AbortController;
  /** The answer sent, even if it has not arrived. */
  answer?: ToolResult;
}

/** Runs each call of the page's tools once, and repeats its answer until the gateway reports its end. */
export class Tools {
  readonly #tools: ClientTools;
  readonly #send: (answer: ToolResult) => void;
  readonly #open = new Map<string, Open>();

  /** `send` may lose an answer; the gateway asks again after it reconnects. */
  constructor(tools: ClientTools | undefined, send: (answer: ToolResult) => void) {
    this.#tools = tools ?? {};
    this.#send = send;
  }

  /** `taken`: the previous page began the session. */
  told(message: ServerMessage, taken: boolean): void {
    if (message.type === "tool.ended") {
      this.#open.get(message.call_id)?.stop.abort();
      this.#open.delete(message.call_id);
    } else if (message.type === "tool.call") {
      const open = this.#open.get(message.call_id);
      if (open === undefined) {
        void this.#begin(message, taken);
      } else if (open.answer !== undefined) {
        this.#send(open.answer);
      }
    }
  }

  /** Aborts all calls. */
  over(): void {
    this.#open.forEach(({ stop }) => stop.abort());
    this.#open.clear();
  }

  async #begin(message: ToolCallMessage, taken: boolean): Promise<void> {
    const open: Open = { stop: new AbortController() };
    this.#open.set(message.call_id, open);
    const answer = { type: "tool.result", call_id: message.call_id, ...(await this.#run(message, open.stop.signal, taken)) } as const;
    if (this.#open.get(message.call_id) === open) {
      open.answer = answer;
      this.#send(answer);
    }
  }

  async #run({ call_id: id, name, args, again }: ToolCallMessage, signal: AbortSignal, taken: boolean): Promise<{ result: unknown } | { error: ToolFailure }> {
    const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
    if (tool === undefined) {
      return { error: { message: `The page that is open now has no tool ${name}.` } };
    }
    if (again === true && taken && tool.readOnly !== true) {
      return { error: { message: "The page was loaded again meanwhile; nobody knows whether it was done.", partial: true } };
    }
    let result: unknown;
    try {
      result = (await tool.run(args, { id, signal })) ?? null;
    } catch (thrown) {
      return { error: failure(thrown) };
    }
    try {
      if (JSON.stringify(result).length <= LONGEST) {
        return { result };
      }
    } catch {
      // Not JSON.
    }
    return { error: { message: "It was done, but its answer is too long or is not JSON.", partial: true } };
  }
}

function failure(thrown: unknown): ToolFailure {
  const { message, retryable, partial } = Object(thrown) as Partial<ToolFailure>;
  return {
    message: (typeof message === "string" && message.trim().slice(0, LONGEST_ERROR)) || "It failed.",
    ...(retryable === true && { retryable }),
    ...(partial === true && { partial }),
  };
}

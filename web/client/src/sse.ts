// Server-sent events according to the HTML standard (section 9.2.6, parsing an event stream).
import { VoiceError } from "./index.js";

/** One event of a stream. */
export interface ServerSentEvent {
  /** Its type; `message` if the stream names none. */
  event: string;
  data: string;
  /** The newest id in the stream; empty before the first. */
  id: string;
}

/** Limit for one event; no gateway sends more. */
const MAX_EVENT = 1 << 20;

/** Parses events from the text of a stream in pieces of any size. */
export class ServerSentEventParser {
  #rest = "";
  #begun = false;
  #event = "";
  #data: string[] = [];
  #size = 0;
  #id = "";

  /** Returns the events that this piece completes. Throws a VoiceError for an event over the limit. */
  push(text: string): ServerSentEvent[] {
    if (!this.#begun && text !== "") {
      this.#begun = true;
      text = text.replace(/^\uFEFF/, "");
    }
    const events: ServerSentEvent[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#line(line, events);
    }
    if (this.#size + this.#rest.length > MAX_EVENT) {
      throw new VoiceError("protocol");
    }
    return events;
  }

  #line(line: string, events: ServerSentEvent[]): void {
    if (line === "") {
      this.#dispatch(events);
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (field) {
      case "event":
        this.#event = value;
        break;
      case "data":
        this.#data.push(value);
        this.#size += value.length;
        break;
      case "id":
        this.#id = value.includes("\0") ? this.#id : value;
    }
  }

  #dispatch(events: ServerSentEvent[]): void {
    if (this.#data.length > 0) {
      events.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
    }
    this.#event = "";
    this.#data = [];
    this.#size = 0;
  }
}

/** Yields the events of a body. The request ends if the caller stops reading. */
export async function* parseServerSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent, void, void> {
  const reader = body.getReader();
  const text = new TextDecoder();
  const parser = new ServerSentEventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      yield* parser.push(text.decode(value, { stream: true }));
    }
  } finally {
    // The reader is no longer needed; it may already be closed.
    reader.cancel().catch(() => undefined);
  }
}

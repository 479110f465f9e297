// Server-sent events, as the HTML standard has them (section 9.2.6, parsing an event stream).
import { VoiceError } from "./index.js";

/** One event of a stream. */
export interface ServerSentEvent {
  /** Its type; `message` where the stream names none. */
  event: string;
  data: string;
  /** The newest id that the stream gave; empty before the first. */
  id: string;
}

/** More of one event than any gateway sends: the rest would be kept for nothing. */
const MAX_EVENT = 1 << 20;

/** Puts events together from the text of a stream, however it was cut into pieces. */
export class ServerSentEventParser {
  #rest = "";
  #begun = false;
  #event = "";
  #data: string[] = [];
  #size = 0;
  #id = "";

  /** The events that this piece completes. Throws a VoiceError for one that has no end. */
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

/** The events of a body, as they come. Whoever stops reading ends the request. */
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
    // Nobody reads on; that it was over already is no news.
    reader.cancel().catch(() => undefined);
  }
}

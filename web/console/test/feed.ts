// Test input for the models.
import type { Happening, Side } from "../src/model/feed.js";

/** performance.now() and the time of day, some ms after the page's start. */
export function moment(at: number): { at: number; wall: number } {
  return { at, wall: Date.parse("2026-11-20T10:00:00.000Z") + at };
}

export function opened(at: number): Happening {
  return { ...moment(at), kind: "opened", side: "voice", inputRate: 16000, outputRate: 24000 };
}

export function anew(at: number): Happening {
  return { ...moment(at), kind: "anew", side: "text", conversationId: "" };
}

export function received(at: number, type: string, fields: object = {}, side: Side = "voice"): Happening {
  return { ...moment(at), kind: "received", side, message: { type, ...fields } };
}

export function sent(at: number, type: string, fields: object = {}): Happening {
  return { ...moment(at), kind: "sent", side: "voice", message: { type, ...fields } };
}

export function uplink(at: number, pcm: Int16Array, rate = 16000, clockMs = at): Happening {
  return { ...moment(at), kind: "uplink", side: "voice", pcm, rate, clockMs };
}

export function downlink(at: number, item: string, pcm: Int16Array, rate = 24000): Happening {
  return { ...moment(at), kind: "downlink", side: "voice", item, pcm, rate };
}

export function sounding(at: number, item: string): Happening {
  return { ...moment(at), kind: "noticed", side: "voice", name: "sounding", event: { item, at, firstByteAt: at, cushionMs: 60 } };
}

export function played(at: number, item: string, playedMs: number, done = false): Happening {
  return { ...moment(at), kind: "noticed", side: "voice", name: "played", event: { item, playedMs, done, at } };
}

export function ended(at: number): Happening {
  return { ...moment(at), kind: "noticed", side: "voice", name: "disconnected", event: { reason: "client_ended", code: 1000, error: undefined, handback: undefined } };
}

/** Samples of silence, or of one value. */
export function ms(duration: number, rate: number, value = 0): Int16Array {
  return new Int16Array((duration * rate) / 1000).fill(value);
}

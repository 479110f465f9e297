// The sentences of the page of calls.
import type { CallState } from "../model/running.js";

export const CALLS = {
  title: "Calls",
  open: "Show all calls",
  shut: "Only operators can see calls. Open the console with the link that voicegw console prints.",
  loading: "Loading …",
  untold: "The gateway does not tell which calls run. Trying again …",
  nobody: "No call is running.",
  incomplete: "The other gateways could not be asked; their calls are missing.",
  here: "this page",
  noUser: "no name",
  back: "All calls",
  over: "This call has ended.",
  nothingSaid: "Nothing has been said yet.",
  notKept: "What is said in this call is not kept, so it cannot be shown.",
  transcript: "Transcript",
  download: "Save the transcript as",
  hangUp: "Hang up",
  hangUpSure: "End this call for its user?",
  hangUpYes: "Yes, hang up",
  hangUpNo: "Keep it running",
  ending: "The call is ending.",
} as const;

export const CALL_STATE: Readonly<Record<CallState, string>> = {
  connecting: "connecting",
  active: "live",
  ending: "ending",
  away: "connection lost, waiting for the user",
  moving: "moving to another gateway",
  lost: "its gateway has died",
};

export const CALL_FACT = {
  id: "Call",
  user: "User",
  agent: "Agent",
  model: "Model",
  started: "Started",
  turns: "Turns",
  cost: "Cost so far",
  node: "Gateway",
} as const;

export const FORMATS = { text: "Text", vtt: "WebVTT", json: "JSON" } as const;

export function turns(n: number): string {
  return n === 1 ? "1 turn" : `${n} turns`;
}

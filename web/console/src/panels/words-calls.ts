// The texts of the calls page.
import type { PastCall } from "../model/past.js";
import type { CallState } from "../model/running.js";

export const CALLS = {
  title: "Calls",
  shut: "Only operators can see calls. Open the console with the link that voicegw console prints.",
  loading: "Loading …",
  untold: "The running calls could not be loaded. Retrying …",
  none: "No call is running.",
  incomplete: "Calls on other gateways are missing: they could not be reached.",
  prompt: "Prompt in force",
  promptTools: "Tools in force",
  promptUntold: "The prompt of this call is not available.",
  running: "Running",
  past: "Past",
  pastUntold: "The past calls could not be loaded. Retrying …",
  noPast: "No past calls are stored.",
  untitled: "Nothing was said",
  more: "Show more",
  older: "Older calls are stored but not listed here.",
  gone: "This call is no longer stored.",
  transcriptUntold: "The transcript could not be loaded. Go back and open the call again.",
  nothingWasSaid: "Nothing was said.",
  eachTurn: "Each turn",
  here: "this page",
  noUser: "no name",
  back: "All calls",
  over: "This call has ended.",
  nothingSaid: "Nothing has been said yet.",
  notKept: "The transcript of this call is not stored, so it cannot be shown.",
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
  lost: "its gateway failed",
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
  mode: "By",
  last: "Last used",
  tools: "Tools called",
  total: "Cost",
  conversation: "Conversation",
} as const;

export const PAST_TURN = { turn: "Turn", response: "Response time", cost: "Cost", tools: "Tools" } as const;

export const FORMATS = { text: "Text", vtt: "WebVTT", json: "JSON" } as const;

export function turns(n: number): string {
  return n === 1 ? "1 turn" : `${n} turns`;
}

export function called(n: number): string {
  return n === 1 ? "1 tool call" : `${n} tool calls`;
}

/** Whether the call was by voice, by text, or both. */
export function mode({ voice, text }: PastCall): string {
  return voice && text ? "voice and text" : voice ? "voice" : text ? "text" : "";
}

export function toolsOf(tools: PastCall["tools"]): string {
  return tools.map(({ tool, calls }) => (calls === 1 ? tool : `${tool} × ${calls}`)).join(", ");
}

// The texts of the calls page.
import type { PastCall } from "../model/past.js";
import type { CallState } from "../model/running.js";

export const CALLS = {
  title: "Calls",
  shut: "Only operators can see calls. Open the console with the link that voicegw console prints.",
  loading: "Loading …",
  untold: "The gateway does not tell which calls run. Trying again …",
  nobody: "No call is running.",
  incomplete: "The other gateways could not be asked; their calls are missing.",
  prompt: "Prompt in force",
  promptTools: "Tools in force",
  promptUntold: "The gateway does not tell the prompt of this call.",
  running: "Running",
  past: "Past",
  pastUntold: "The gateway does not tell which calls there were. Trying again …",
  noPast: "No past call is kept.",
  untitled: "Nothing was said",
  more: "Show more",
  older: "Older calls are kept that are not listed here.",
  gone: "This call is no longer kept.",
  transcriptUntold: "The gateway does not tell what was said. Go back and open the call again.",
  nothingWasSaid: "Nothing was said.",
  eachTurn: "Each turn",
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

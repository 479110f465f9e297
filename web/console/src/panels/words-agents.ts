// The texts of the agents page.
import type { BudgetKey } from "../model/agents.js";

export const AGENTS = {
  title: "Agents",
  shut: "Only operators can see and change agents. Open the console with the link that voicegw console prints.",
  loading: "Loading …",
  make: "New agent",
  back: "All agents",
  off: "off",
  source: { configuration: "configuration", file: "file", store: "edited" } as Readonly<Record<string, string>>,
  gone: "This agent was deleted.",
  save: "Save",
  create: "Create",
  remove: "Delete",
  removeSure: "Delete permanently?",
  removeYes: "Yes, delete",
  removeNo: "Keep it",
  talk: "Talk to it",
  type: "Type to it",
  switchTo: "Switch the call to it",
  switchNow: "Switch this call to it now",
  switching: "Asking …",
  switchAsked: "It takes over when the current agent has finished.",
  speaks: "It is on the call now.",
  talkHint: "Starts a new conversation and a call.",
  typeHint: "Starts a new conversation and a call without the microphone.",
  talkUnsaved: "Save first: the call would use the last saved version.",
  saved: "Saved. New conversations use it.",
  created: "Created. New conversations can use it.",
  wrong: (n: number) => (n === 1 ? "Not saved: one field needs a change." : `Not saved: ${n} fields need a change.`),
  conflict: "Not saved: someone else changed this agent since you opened it.",
  exists: "Not created: another agent has this id.",
  theirs: "Discard mine and load theirs",
  mine: "Overwrite theirs with mine",
  deleteConflict: "Not deleted: someone else changed this agent since you opened it. Check it again.",
  problems: "Problems on this gateway:",
  escape: "You have unsaved changes. Save them, or press Close to discard them.",
  unsaved: "You have unsaved changes.",
} as const;

export const FIELD = {
  id: ["Id", "Small letters, digits, - and _. Clients ask for the agent by it."],
  name: ["Name", "Shown to people."],
  description: ["Description", "The agent's purpose. Shown to people."],
  playbook: ["Playbook", "The agent's instructions: who it is and what to do."],
  language: ["Language", "A tag such as de or en-US. Empty: the model decides."],
  greeting: ["Greeting", "How it opens a call, such as: Say your name. Empty: the user speaks first."],
  provider: ["Provider", "The provider of its voice model."],
  model: ["Model", "A model of that provider. Empty: the configured one."],
  enabled: ["Can start conversations", ""],
  allTools: ["All tools", ""],
} as const;

export const GROUP = { who: "Who it is", tools: "Tools", speech: "Speech", switches: "Switches to", budgets: "Budgets of a turn" } as const;
export const BUDGET_HINT = "Leave a field empty for the gateway's default.";
export const STANDARD = "Default";
export const VOICE_OF = (provider: string) => `Voice with ${provider}`;
export const NO_OTHERS = "There is no other agent.";

export const BUDGET: Readonly<Record<BudgetKey, string>> = {
  "voice.retrieval": "Voice: lookups",
  "voice.total": "Voice: all calls",
  "voice.top_k": "Voice: results",
  "voice.tool_time": "Voice: time, such as 1.5s",
  "text.retrieval": "Text: lookups",
  "text.total": "Text: all calls",
  "text.top_k": "Text: results",
  "text.tool_time": "Text: time, such as 30s",
};

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
  removeSure: "Delete for good?",
  removeYes: "Yes, delete",
  removeNo: "Keep it",
  talk: "Talk to it",
  type: "Type to it",
  switchTo: "Switch the call to it",
  switchNow: "Switch this call to it now",
  switching: "Asking …",
  switchAsked: "It continues the call as soon as the agent before has finished.",
  speaks: "It has the call.",
  talkHint: "Begins a new conversation and a call.",
  typeHint: "Begins a new conversation and a call without the microphone.",
  talkUnsaved: "Save first: the call would be with the agent as it was.",
  saved: "Saved. New conversations have it.",
  created: "Created. New conversations may ask for it.",
  wrong: (n: number) => (n === 1 ? "Not saved: one field needs a change." : `Not saved: ${n} fields need a change.`),
  conflict: "Not saved: someone else changed this agent since you opened it.",
  exists: "Not created: another agent has this id.",
  theirs: "Show theirs, and drop mine",
  mine: "Save mine over theirs",
  deleteConflict: "Not deleted: someone else changed this agent since you opened it. Look at it again.",
  problems: "Problems on this gateway:",
  escape: "There are changes that are not saved. Save them, or close the page with its button to drop them.",
  unsaved: "There are changes that are not saved.",
} as const;

export const FIELD = {
  id: ["Id", "Small letters, digits, - and _. Clients ask for the agent by it."],
  name: ["Name", "Shown to people."],
  description: ["Description", "What the agent is for. Shown to people."],
  playbook: ["Playbook", "What the agent is told: who it is and what it has to do."],
  language: ["Language", "A tag such as de or en-US. Empty: the model decides."],
  greeting: ["Greeting", "How it opens a call, such as: Say your name. Empty: the user speaks first."],
  provider: ["Provider", "The provider of its voice model."],
  model: ["Model", "A model of that provider. Empty: the configured one."],
  enabled: ["May begin conversations", ""],
  allTools: ["All tools", ""],
} as const;

export const GROUP = { who: "Who it is", tools: "Tools", speech: "Speech", switches: "Switches to", budgets: "Budgets of a turn" } as const;
export const BUDGET_HINT = "Leave a field empty for the gateway's default.";
export const STANDARD = "Default";
export const VOICE_OF = (provider: string) => `Voice with ${provider}`;
export const NO_OTHERS = "There is no other agent.";

export const BUDGET: Readonly<Record<BudgetKey, string>> = {
  "voice.retrieval": "Voice: lookups",
  "voice.total": "Voice: calls in all",
  "voice.top_k": "Voice: results",
  "voice.tool_time": "Voice: time, such as 1.5s",
  "text.retrieval": "Text: lookups",
  "text.total": "Text: calls in all",
  "text.top_k": "Text: results",
  "text.tool_time": "Text: time, such as 30s",
};

// Agents as the gateway stores them (GET /v1/agents), and the form that edits them.
import { fields, list, strings, text, type Fields } from "./shape.js";

/** An agent in the list. */
export interface AgentLine {
  id: string;
  name: string;
  description: string;
  enabled: boolean;
  /** Its origin: "configuration", "file" or "store". */
  source: string;
  /** The agent's problems on this gateway. */
  problems: readonly string[];
}

/** The numbers of a budget, by their path in the document; empty for the gateway's default. */
export const BUDGETS = ["voice.retrieval", "voice.total", "voice.top_k", "voice.tool_time", "text.retrieval", "text.total", "text.top_k", "text.tool_time"] as const;
export type BudgetKey = (typeof BUDGETS)[number];

/** An agent's document as form fields; empty ones are omitted. */
export interface AgentForm {
  id: string;
  name: string;
  description: string;
  playbook: string;
  language: string;
  greeting: string;
  provider: string;
  model: string;
  voices: Readonly<Record<string, string>>;
  /** May use all tools; `tools` is then ignored. */
  allTools: boolean;
  tools: readonly string[];
  switchTo: readonly string[];
  budget: Readonly<Partial<Record<BudgetKey, string>>>;
  enabled: boolean;
}

export const NEW_AGENT: AgentForm = {
  id: "",
  name: "",
  description: "",
  playbook: "",
  language: "",
  greeting: "",
  provider: "",
  model: "",
  voices: {},
  allTools: true,
  tools: [],
  switchTo: [],
  budget: {},
  enabled: true,
};

/** A problem of a document and the form key where it is shown; empty for the whole document. */
export interface FormProblem {
  at: string;
  message: string;
}

/** Parses the list; null for another shape. */
export function readAgents(value: unknown): readonly AgentLine[] | null {
  const answer = fields(value);
  if (!Array.isArray(answer["agents"])) {
    return null;
  }
  return list(answer["agents"]).map((entry) => readLine(fields(entry)));
}

function readLine(entry: Fields): AgentLine {
  return {
    id: text(entry["id"]),
    name: text(entry["name"]),
    description: text(entry["description"]),
    enabled: entry["enabled"] !== false,
    source: text(entry["source"]),
    problems: strings(entry["problems"]),
  };
}

/** Converts a document to a form. */
export function formOf(document: unknown): AgentForm {
  const d = fields(document);
  const budget: Partial<Record<BudgetKey, string>> = {};
  for (const key of BUDGETS) {
    const [mode, number] = key.split(".") as [string, string];
    const value = fields(fields(d["budget"])[mode])[number];
    if (typeof value === "string" || typeof value === "number") {
      budget[key] = String(value);
    }
  }
  const voices: Record<string, string> = {};
  for (const [provider, voice] of Object.entries(fields(d["voices"]))) {
    voices[provider] = text(voice);
  }
  return {
    id: text(d["id"]),
    name: text(d["name"]),
    description: text(d["description"]),
    playbook: text(d["playbook"]),
    language: text(d["language"]),
    greeting: text(d["greeting"]),
    provider: text(d["provider"]),
    model: text(d["model"]),
    voices,
    allTools: !Array.isArray(d["tools"]),
    tools: strings(d["tools"]),
    switchTo: strings(d["switch_to"]),
    budget,
    enabled: d["enabled"] !== false,
  };
}

/** Converts a form to JSON with one value per line, so that the line of an error identifies the field. */
export function documentOf(form: AgentForm): string {
  const document: Record<string, unknown> = { id: form.id, name: form.name };
  for (const key of ["description", "playbook", "language", "greeting", "provider", "model"] as const) {
    if (form[key] !== "" || key === "playbook") {
      document[key] = form[key];
    }
  }
  const voices = Object.entries(form.voices).filter(([, voice]) => voice !== "");
  if (voices.length > 0) {
    document["voices"] = Object.fromEntries(voices);
  }
  if (!form.allTools) {
    document["tools"] = form.tools;
  }
  if (form.switchTo.length > 0) {
    document["switch_to"] = form.switchTo;
  }
  const budget: Record<string, Record<string, unknown>> = {};
  for (const key of BUDGETS) {
    const value = form.budget[key]?.trim() ?? "";
    if (value !== "") {
      const [mode, number] = key.split(".") as [string, string];
      // Other text is sent unchanged, because the gateway explains the error.
      (budget[mode] ??= {})[number] = /^\d{1,9}$/.test(value) && number !== "tool_time" ? Number(value) : value;
    }
  }
  if (Object.keys(budget).length > 0) {
    document["budget"] = budget;
  }
  if (!form.enabled) {
    document["enabled"] = false;
  }
  return JSON.stringify(document, null, 1);
}

/** Assigns the problems of a refused document to fields, by line or by the name of the missing field. */
export function placed(problems: unknown, document: string): readonly FormProblem[] {
  const keys = keysOf(document);
  return list(problems).map((entry) => {
    const { line, message: told } = fields(entry);
    const message = text(told);
    const missing = /^the agent has no (\w+)/.exec(message)?.[1];
    return { at: missing ?? (typeof line === "number" ? (keys[line - 1] ?? "") : ""), message };
  });
}

/** The key on each line of a document: "tools", "voices.gemini", "budget.voice.total". */
function keysOf(document: string): readonly string[] {
  const path: string[] = [];
  return document.split("\n").map((line) => {
    const depth = line.search(/\S/);
    const key = /^\s*"((?:[^"\\]|\\.)*)":/.exec(line)?.[1];
    if (key !== undefined) {
      path.length = depth - 1;
      path.push(key);
    }
    return path.slice(0, Math.max(depth, 1)).join(".");
  });
}

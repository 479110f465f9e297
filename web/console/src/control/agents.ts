// Requests about agents, as an operator.
import { documentOf, formOf, placed, readAgents, type AgentForm, type AgentLine, type FormProblem } from "../model/agents.js";
import { fields, list, text } from "../model/shape.js";
import { ask, UNREACHABLE } from "./ask.js";

/** An agent opened for editing: its form, and the version that a change must match. */
export interface Opened {
  form: AgentForm;
  /** The ETag; empty for a new agent. */
  tag: string;
}

/** The result of a change. */
export type Outcome =
  | { kind: "done"; opened: Opened }
  /** The document is invalid. */
  | { kind: "wrong"; problems: readonly FormProblem[] }
  /** The agent was changed since it was opened, or already exists. */
  | { kind: "conflict" }
  /** Any other failure, as a message. */
  | { kind: "failed"; message: string };

/** Tools that an agent can use. */
export interface ToolChoice {
  id: string;
  description: string;
}

/** The reason sent with a switch from the console. */
const SWITCHED_HERE = "asked for in the console";

/** `request` is fetch with the operator's token. */
export class AgentsControl {
  constructor(private readonly request: typeof fetch) {}

  /** Lists all agents; null without an answer. */
  async list(): Promise<readonly AgentLine[] | null> {
    return readAgents((await ask(this.request, "v1/agents")).answer);
  }

  async tools(): Promise<readonly ToolChoice[]> {
    const { answer } = await ask(this.request, "v1/tools");
    return list(fields(answer)["tools"]).map((entry) => ({ id: text(fields(entry)["toolId"]), description: text(fields(entry)["summary"]) }));
  }

  /** Loads an agent; null if it does not exist. */
  async open(id: string): Promise<Opened | null> {
    const { status, answer, tag } = await ask(this.request, path(id));
    return status === 200 ? { form: formOf(fields(answer)["document"]), tag } : null;
  }

  /** Saves an agent if it still has the opened version, or creates it. */
  async save({ form, tag }: Opened): Promise<Outcome> {
    const body = documentOf(form);
    const condition: Record<string, string> = tag === "" ? { "if-none-match": "*" } : { "if-match": tag };
    const { status, answer, tag: next } = await ask(this.request, path(form.id), { method: "PUT", headers: { "content-type": "application/json", ...condition }, body });
    if (status === 200 || status === 201) {
      return { kind: "done", opened: { form: formOf(fields(answer)["document"]), tag: next } };
    }
    const error = fields(fields(answer)["error"]);
    if (status === 422) {
      return { kind: "wrong", problems: placed(error["problems"], body) };
    }
    return refused(status, text(error["message"]));
  }

  /** Deletes an agent if it still has the opened version. */
  async remove({ form, tag }: Opened): Promise<Outcome | { kind: "gone" }> {
    const { status, answer } = await ask(this.request, path(form.id), { method: "DELETE", headers: { "if-match": tag } });
    return status === 204 ? { kind: "gone" } : refused(status, text(fields(fields(answer)["error"])["message"]));
  }

  /** Switches a call to an agent. Returns null on success, otherwise the reason. */
  async switchCall(session: string, agent: string): Promise<string | null> {
    const body = JSON.stringify({ agent, reason: SWITCHED_HERE });
    const { status, answer } = await ask(this.request, `v1/sessions/${encodeURIComponent(session)}/agent`, { method: "POST", headers: { "content-type": "application/json" }, body });
    return status === 202 ? null : status === 0 ? UNREACHABLE : text(fields(fields(answer)["error"])["message"]);
  }
}

function refused(status: number, message: string): Outcome {
  if (status === 412) {
    return { kind: "conflict" };
  }
  return { kind: "failed", message: status === 0 ? UNREACHABLE : message };
}

/** Invalid ids are sent too, because the gateway explains the error. */
function path(id: string): string {
  return `v1/agents/${encodeURIComponent(id.trim() === "" ? "-" : id)}`;
}

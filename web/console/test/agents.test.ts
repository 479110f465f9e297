import assert from "node:assert/strict";
import { test } from "vitest";
import { AgentsControl } from "../src/control/agents.js";
import { documentOf, formOf, NEW_AGENT, placed, readAgents } from "../src/model/agents.js";

const DOCUMENT = {
  id: "billing",
  name: "Billing",
  playbook: "You answer.\nShortly.",
  provider: "gemini",
  voices: { gemini: "Kore", openai: "marin" },
  tools: ["kb_search", "kb-get"],
  switch_to: ["reception"],
  budget: { voice: { total: 3, tool_time: "1s" }, text: { top_k: 4 } },
  enabled: false,
};

test("a document is unchanged by the form", () => {
  assert.deepEqual(JSON.parse(documentOf(formOf(DOCUMENT))), DOCUMENT);
  // No tools differ from all tools.
  assert.deepEqual(JSON.parse(documentOf(formOf({ ...DOCUMENT, tools: [] }))).tools, []);
  const { tools: _, ...all } = DOCUMENT;
  assert.deepEqual(JSON.parse(documentOf(formOf(all))), all);
});

test("each problem is shown at its field", () => {
  const text = documentOf({ ...formOf(DOCUMENT), budget: { "voice.total": "many", "text.top_k": "4" } });
  const lines = text.split("\n");
  const at = (needle: string): number => lines.findIndex((line) => line.includes(needle)) + 1;
  const reported = placed(
    [
      { line: at("kb-get"), message: "there is no tool" },
      { line: at("Kore"), message: "gemini has no voice" },
      { line: at("many"), message: "budget.voice.total must be a whole number" },
      { line: at("playbook"), message: "playbook is empty" },
      { line: 1, message: "the agent has no description" },
      { message: "as a whole" },
    ],
    text,
  );
  assert.deepEqual(reported.map((p) => p.at), ["tools", "voices.gemini", "budget.voice.total", "playbook", "description", ""]);
});

test("answers of another shape contain no agents", () => {
  assert.equal(readAgents({ error: {} }), null);
  assert.deepEqual(readAgents({ agents: [{ id: "a", name: "A", enabled: false, source: "store", problems: ["x"] }, 7] })?.map(({ id, enabled, problems }) => [id, enabled, problems.length]), [
    ["a", false, 1],
    ["", true, 0],
  ]);
});

test("a change sends its base version, and a conflict is not a failure", async () => {
  const asked: [string, Record<string, string>][] = [];
  let answer = new Response(JSON.stringify({ document: DOCUMENT }), { status: 200, headers: { etag: '"18"' } });
  const control = new AgentsControl((async (url: string, init: RequestInit) => {
    asked.push([`${init.method} ${url}`, init.headers as Record<string, string>]);
    return answer;
  }) as typeof fetch);
  const form = formOf(DOCUMENT);
  assert.deepEqual(await control.save({ form, tag: '"17"' }), { kind: "done", opened: { form, tag: '"18"' } });
  answer = new Response(JSON.stringify({ error: { code: "precondition_failed", message: "" } }), { status: 412 });
  assert.deepEqual(await control.save({ form: NEW_AGENT, tag: "" }), { kind: "conflict" });
  answer = new Response(JSON.stringify({ error: { code: "agent_in_use", message: "These agents switch to it: a." } }), { status: 409 });
  assert.deepEqual(await control.remove({ form, tag: '"18"' }), { kind: "failed", message: "These agents switch to it: a." });
  answer = new Response(null, { status: 204 });
  assert.deepEqual(await control.remove({ form, tag: '"18"' }), { kind: "gone" });
  assert.deepEqual(
    asked.map(([what, headers]) => [what, headers["if-match"] ?? headers["if-none-match"]]),
    [
      ["PUT v1/agents/billing", '"17"'],
      ["PUT v1/agents/-", "*"],
      ["DELETE v1/agents/billing", '"18"'],
      ["DELETE v1/agents/billing", '"18"'],
    ],
  );
});

import assert from "node:assert/strict";
import { test } from "vitest";
import { Agent } from "../src/agentstate.js";
import type { ServerMessage } from "../src/protocol/messages.js";

const told = (type: string, fields: Record<string, unknown> = {}): ((agent: Agent) => void) => (agent) => agent.told({ type, seq: 1, ...fields } as unknown as ServerMessage);
const tool = (type: string, call_id: string) => told(type, { call_id, tool: "search" });
const sounds = (item: string) => (agent: Agent): void => agent.sounds(item);
const silent = (item: string) => (agent: Agent): void => agent.silent(item);

// Events in order, and the states reported.
const CASES: Record<string, [happenings: ((agent: Agent) => void)[], states: string[]]> = {
  "nothing has happened": [[], []],
  "a greeting is thought of, and spoken": [[told("turn.started"), sounds("a"), silent("a"), told("turn.ended")], ["thinking", "speaking", "listening"]],
  "the user goes on after a pause": [[told("speech.stopped"), told("speech.started"), told("speech.stopped")], ["thinking", "listening", "thinking"]],
  "a turn that answers nothing ends": [[told("speech.stopped"), told("turn.started"), told("turn.ended")], ["thinking", "listening"]],
  "an answer fails": [[told("turn.started"), told("error")], ["thinking", "listening"]],
  "the user speaks into an answer: it is speaking as long as it sounds": [[sounds("a"), told("speech.started"), told("audio.flush"), silent("a")], ["speaking", "listening"]],
  "the answer to what interrupted it": [[sounds("a"), told("speech.started"), told("speech.stopped"), silent("a"), sounds("b")], ["speaking", "thinking", "speaking"]],
  "one item follows another": [[sounds("a"), sounds("b"), silent("a"), silent("b")], ["speaking", "listening"]],
  "a tool runs after the first words": [
    [told("turn.started"), sounds("a"), tool("tool.started", "1"), silent("a"), tool("tool.ended", "1"), sounds("b"), silent("b")],
    ["thinking", "speaking", "thinking", "speaking", "listening"],
  ],
  "a tool has begun before the first words sound": [[told("turn.started"), tool("tool.started", "1"), sounds("a"), silent("a")], ["thinking", "speaking", "thinking"]],
  "two tools run": [[tool("tool.started", "1"), tool("tool.started", "2"), tool("tool.ended", "1"), tool("tool.ended", "2"), told("turn.ended")], ["thinking", "listening"]],
  "a turn ends with a tool that has no end": [[tool("tool.started", "1"), told("turn.ended")], ["thinking", "listening"]],
  "it waits for an answer to its question": [[told("turn.started"), told("confirmation.request")], ["thinking", "listening"]],
  "what was going on is forgotten, and what sounds goes on": [[tool("tool.started", "1"), sounds("a"), (agent) => agent.forget(), silent("a")], ["thinking", "speaking", "listening"]],
  "the end": [[tool("tool.started", "1"), sounds("a"), (agent) => agent.end(), silent("a")], ["thinking", "speaking", "listening"]],
};

for (const [name, [happenings, states]] of Object.entries(CASES)) {
  test(name, () => {
    const seen: string[] = [];
    const agent = new Agent((state) => seen.push(state));
    happenings.forEach((happen) => happen(agent));
    assert.deepEqual(seen, states);
    assert.equal(agent.state, states.at(-1) ?? "listening");
  });
}

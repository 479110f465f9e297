import assert from "node:assert/strict";
import { test } from "vitest";
import { Agent } from "../src/agentstate.js";
import type { ServerMessage } from "../src/protocol/messages.js";

const reported = (type: string, fields: Record<string, unknown> = {}): ((agent: Agent) => void) => (agent) => agent.told({ type, seq: 1, ...fields } as unknown as ServerMessage);
const tool = (type: string, call_id: string) => reported(type, { call_id, tool: "search" });
const sounds = (item: string) => (agent: Agent): void => agent.sounds(item);
const silent = (item: string) => (agent: Agent): void => agent.silent(item);

// Events in order, and the reported states.
const CASES: Record<string, [happenings: ((agent: Agent) => void)[], states: string[]]> = {
  "no event": [[], []],
  "greeting": [[reported("turn.started"), sounds("a"), silent("a"), reported("turn.ended")], ["thinking", "speaking", "listening"]],
  "the user continues after a pause": [[reported("speech.stopped"), reported("speech.started"), reported("speech.stopped")], ["thinking", "listening", "thinking"]],
  "a turn without an answer ends": [[reported("speech.stopped"), reported("turn.started"), reported("turn.ended")], ["thinking", "listening"]],
  "an answer fails": [[reported("turn.started"), reported("error")], ["thinking", "listening"]],
  "the user interrupts an answer: the agent speaks while it sounds": [[sounds("a"), reported("speech.started"), reported("audio.flush"), silent("a")], ["speaking", "listening"]],
  "the answer after an interruption": [[sounds("a"), reported("speech.started"), reported("speech.stopped"), silent("a"), sounds("b")], ["speaking", "thinking", "speaking"]],
  "one item follows another": [[sounds("a"), sounds("b"), silent("a"), silent("b")], ["speaking", "listening"]],
  "a tool runs after the first words": [
    [reported("turn.started"), sounds("a"), tool("tool.started", "1"), silent("a"), tool("tool.ended", "1"), sounds("b"), silent("b")],
    ["thinking", "speaking", "thinking", "speaking", "listening"],
  ],
  "a tool begins before the first words sound": [[reported("turn.started"), tool("tool.started", "1"), sounds("a"), silent("a")], ["thinking", "speaking", "thinking"]],
  "two tools run": [[tool("tool.started", "1"), tool("tool.started", "2"), tool("tool.ended", "1"), tool("tool.ended", "2"), reported("turn.ended")], ["thinking", "listening"]],
  "a turn ends while a tool runs": [[tool("tool.started", "1"), reported("turn.ended")], ["thinking", "listening"]],
  "the agent waits for an approval": [[reported("turn.started"), reported("confirmation.request")], ["thinking", "listening"]],
  "forget drops running work, but playback continues": [[tool("tool.started", "1"), sounds("a"), (agent) => agent.forget(), silent("a")], ["thinking", "speaking", "listening"]],
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

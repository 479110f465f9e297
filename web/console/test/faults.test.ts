import assert from "node:assert/strict";
import { test } from "vitest";
import { Faults } from "../src/model/faults.js";
import { faultEffect, faultEnd, watchFor } from "../src/panels/words-instruments.js";
import kinds from "../../../sim/scenario/fault.go?raw";
import { ended, received } from "./feed.js";

const DELAY = { do: "delay", label: "Hold everything back", for: true };
const DROP = { do: "drop", label: "Drop the connection", for: false };

function gateway(answer: (path: string, body: unknown) => Response): { faults: Faults; asked: [string, unknown][] } {
  const asked: [string, unknown][] = [];
  const request = async (path: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const body: unknown = init?.body === undefined ? undefined : JSON.parse(init.body as string);
    asked.push([String(path), body]);
    return answer(String(path), body);
  };
  return { faults: new Faults(request as typeof fetch), asked };
}

test("the simulator lists the available faults", async () => {
  const { faults } = gateway(() => Response.json({ faults: [DROP, DELAY, null, { do: 7 }] }));
  assert.equal(faults.list.value, null);
  await faults.load();
  assert.deepEqual(faults.list.value, [DROP, DELAY]);
});

test("without a simulator, or without an answer, no fault is offered", async () => {
  for (const answer of [() => new Response("", { status: 404 }), () => Response.json({}), () => new Response("<html>"), () => Promise.reject(new TypeError("gone")) as never]) {
    const { faults } = gateway(answer);
    await faults.load();
    assert.equal(faults.list.value, null);
  }
});

test("a fault applies now, at the next call, or not at all", async () => {
  const { faults, asked } = gateway((_, body) => {
    switch ((body as { do: string }).do) {
      case "drop":
        return Response.json({ accepted: true, when: "now" }, { status: 202 });
      case "delay":
        return Response.json({ accepted: true, when: "next_call" }, { status: 202 });
      default:
        return Response.json({ error: { code: "session_unknown", message: "There is no such session." } }, { status: 404 });
    }
  });
  await faults.commit(DROP, "voice-1", 2000);
  await faults.commit(DELAY, "voice-1", 2000);
  await faults.commit({ ...DROP, do: "quota" }, "voice-1");
  assert.deepEqual(asked, [
    ["v1/simulator/faults", { session_id: "voice-1", do: "drop" }],
    ["v1/simulator/faults", { session_id: "voice-1", do: "delay", for_ms: 2000 }],
    ["v1/simulator/faults", { session_id: "voice-1", do: "quota" }],
  ]);
  assert.deepEqual(faults.committed.value.map(({ fault, result, why, forMs }) => [fault.do, result, why, forMs]), [
    ["quota", "failed", "There is no such session.", undefined],
    ["delay", "next_call", "", 2000],
    ["drop", "now", "", undefined],
  ]);
});

test("a pending request is shown; an unreachable gateway is reported", async () => {
  let answer: (response: Response) => void = () => {};
  const { faults } = gateway(() => new Promise((resolve) => (answer = resolve)) as never);
  const committed = faults.commit(DROP, "voice-1");
  assert.equal(faults.committed.value[0]!.result, "asking");
  await Promise.resolve();
  answer(new Response("no JSON", { status: 502 }));
  await committed;
  assert.equal(faults.committed.value[0]!.result, "failed");
});

test("the newest fifty are stored", async () => {
  const { faults } = gateway(() => Response.json({ when: "now" }, { status: 202 }));
  for (let i = 0; i < 80; i++) {
    await faults.commit(DROP, "voice-1");
  }
  assert.deepEqual([faults.committed.value.length, faults.committed.value[0]!.number], [50, 80]);
});

test("a fault is shown from its start to its end, with its effects", async () => {
  const { faults } = gateway(() => Response.json({ when: "now" }));
  const shown = (): string[] => [...faults.committed.value[0]!.effects.map(faultEffect), faultEnd(faults.committed.value[0]!)];
  faults.take(received(1, "provider.reconnecting", { reason: "lost" }));
  await faults.commit(DROP, "voice-1");
  assert.deepEqual(shown(), ["not over yet"], "earlier events are no effects");
  faults.take(received(2, "provider.reconnecting", { reason: "lost" }));
  faults.take(received(3, "turn.ended", { turn: 1, status: "completed" }));
  assert.equal(shown().at(-1), "not over yet", "the connection is still lost");
  faults.take(received(4, "provider.reconnected", { reason: "lost", lost_ms: 420, how: "replayed" }));
  faults.take(received(5, "error", { code: "limit" }));
  assert.deepEqual(shown(), [
    "the gateway replaces the connection to the provider (lost)",
    "a turn ended (completed)",
    "connected again after 420 ms; the gateway replayed the conversation",
    "over: reconnected to the provider",
  ]);

  const armed = gateway(() => Response.json({ when: "next_call" })).faults;
  await armed.commit({ ...DROP, do: "duplicate_call" }, "voice-1");
  armed.take(received(1, "turn.ended", { turn: 1, status: "completed" }));
  assert.equal(faultEnd(armed.committed.value[0]!), "not over yet", "no tool was called");
  armed.take(received(2, "tool.ended", { call_id: "c", tool: "kb_search", turn: 2, ok: true, duration_ms: 1, deduplicated: true }));
  armed.take(received(3, "turn.ended", { turn: 2, status: "completed" }));
  assert.equal(faultEnd(armed.committed.value[0]!), "over: a turn was answered after it");

  await armed.commit(DROP, "voice-1");
  armed.take(ended(9));
  assert.equal(faultEnd(armed.committed.value[0]!), "over: the call has ended");
  assert.equal(faultEnd({ ...armed.committed.value[0]!, result: "failed" }), "");
});

test("every fault of the simulator is explained", () => {
  const offered = [...kinds.matchAll(/^\t\{(\w+), "/gm)].map(([, name]) => new RegExp(`\\b${name}\\s+(?:FaultKind\\s+)?= "(\\w+)"`).exec(kinds)?.[1]);
  assert.ok(offered.length > 10 && offered.every((word) => word !== undefined && watchFor(word) !== ""), `${offered.filter((word) => watchFor(word ?? "") === "")}`);
});

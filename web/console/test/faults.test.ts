import assert from "node:assert/strict";
import { test } from "vitest";
import { Faults } from "../src/model/faults.js";

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

test("what can be committed is what the simulator says", async () => {
  const { faults } = gateway(() => Response.json({ faults: [DROP, DELAY, null, { do: 7 }] }));
  assert.equal(faults.list.value, null);
  await faults.load();
  assert.deepEqual(faults.list.value, [DROP, DELAY]);
});

test("without a simulator, or with nobody there, there is nothing to commit", async () => {
  for (const answer of [() => new Response("", { status: 404 }), () => Response.json({}), () => new Response("<html>"), () => Promise.reject(new TypeError("gone")) as never]) {
    const { faults } = gateway(answer);
    await faults.load();
    assert.equal(faults.list.value, null);
  }
});

test("a fault is committed now, at the next call, or not at all", async () => {
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

test("while the gateway thinks it is being asked; one that is away says so", async () => {
  let answer: (response: Response) => void = () => {};
  const { faults } = gateway(() => new Promise((resolve) => (answer = resolve)) as never);
  const committed = faults.commit(DROP, "voice-1");
  assert.equal(faults.committed.value[0]!.result, "asking");
  await Promise.resolve();
  answer(new Response("no JSON", { status: 502 }));
  await committed;
  assert.equal(faults.committed.value[0]!.result, "failed");
});

test("the newest fifty are remembered", async () => {
  const { faults } = gateway(() => Response.json({ when: "now" }, { status: 202 }));
  for (let i = 0; i < 80; i++) {
    await faults.commit(DROP, "voice-1");
  }
  assert.deepEqual([faults.committed.value.length, faults.committed.value[0]!.number], [50, 80]);
});

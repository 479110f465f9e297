// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { VoicegwCall } from "../src/element.js";
import { FakeWebSocket, installNetwork, removeNetwork, settle } from "./fakes.js";

vi.mock("../src/audio/setup.js", () => ({
  AudioSetup: class {
    ready = false;
    open = async (): Promise<void> => undefined;
    close = (): void => undefined;
  },
}));

beforeEach(() => {
  installNetwork();
  document.body.replaceChildren();
});
afterEach(removeNetwork);

/** An element in a page, and what a part of it shows. */
function embed(attributes: Record<string, string> = {}): { call: VoicegwCall; part: (id: string) => HTMLElement } {
  const call = document.createElement("voicegw-call") as VoicegwCall;
  for (const [name, value] of Object.entries({ url: "ws://gateway/v1/voice", ...attributes })) {
    call.setAttribute(name, value);
  }
  call.options = { microphone: false, keep: false };
  document.body.append(call);
  return { call, part: (id) => call.shadowRoot!.getElementById(id)! };
}

async function open(): Promise<FakeWebSocket> {
  await settle();
  FakeWebSocket.last.start();
  await settle();
  return FakeWebSocket.last;
}

test("one tag is a whole conversation", async () => {
  const { call, part } = embed({ agent: "sales", "conversation-id": "c-7", label: "Call us", "label-end": "Bye" });
  const told: string[] = [];
  call.addEventListener("connected", () => told.push("connected"));
  call.addEventListener("disconnected", (event) => told.push((event as CustomEvent).detail.reason));
  assert.equal(part("talk").textContent, "Call us");
  assert.equal(part("type").hidden, true);
  part("talk").click();
  const gateway = await open();
  const { agent, conversation_id } = gateway.of("session.start")[0]!;
  assert.deepEqual([agent, conversation_id], ["sales", "c-7"]);
  assert.deepEqual([part("talk").textContent, part("state").textContent, part("type").hidden], ["Bye", "listening", false]);

  (part("text") as HTMLInputElement).value = "Hello";
  part("type").dispatchEvent(new Event("submit", { cancelable: true }));
  assert.equal(gateway.of("input.text")[0]!.text, "Hello");
  const line = { type: "transcript", role: "assistant", final: false, started_at: "2026-11-20T10:00:00.000Z" };
  gateway.say({ ...line, seq: 2, id: "a", text: "Good" });
  gateway.say({ ...line, seq: 3, id: "a", text: "<b>Good</b> day" });
  assert.deepEqual([...part("lines").children].map((one) => [one.className, one.textContent]), [["assistant", "<b>Good</b> day"]]);

  part("talk").click();
  gateway.say({ type: "session.ended", seq: 4, reason: "client_ended" });
  gateway.drop(1000);
  await settle();
  assert.deepEqual(told, ["connected", "client_ended"]);
  assert.equal(part("talk").textContent, "Call us");
});

test("a question is shown with everything, and answered once", async () => {
  const { part } = embed();
  part("talk").click();
  const gateway = await open();
  const question = { type: "confirmation.request", seq: 2, token: "cf_1", tool: "pay", args: { to: "Bob\u202e" }, preview: "Pay Bob\u202e", expires_at: "2026-11-20T10:00:00.000Z" };
  gateway.say(question);
  const [shown] = [...part("questions").children] as [HTMLElement];
  assert.match(shown.textContent!, /Pay Bob\\u202e.*pay \{.*"to": "Bob\\u202e"/s);
  const [approve, decline] = [...shown.querySelectorAll("button")] as [HTMLButtonElement, HTMLButtonElement];
  approve.click();
  decline.click();
  assert.deepEqual(gateway.of("confirmation.resolve"), [{ type: "confirmation.resolve", token: "cf_1", approved: true }]);
  gateway.say({ type: "error", seq: 3, code: "store_unavailable", message: "Not now.", retryable: true });
  assert.equal(approve.disabled, false);
  gateway.say({ type: "confirmation.ended", seq: 4, token: "cf_1", tool: "pay", outcome: "approved" });
  assert.equal(part("questions").children.length, 0);
});

test("a ticket comes from the page's backend, for each connection", async () => {
  const asked = vi.fn(async () => new Response('{"ticket":"t-1"}'));
  vi.stubGlobal("fetch", asked);
  const { part } = embed({ "ticket-url": "/ticket" });
  part("talk").click();
  const gateway = await open();
  assert.deepEqual(asked.mock.calls[0], ["/ticket", { method: "POST" }]);
  assert.equal(gateway.of("session.start")[0]!.ticket, "t-1");
});

test("taken out of the page it hangs up, moved it does not", async () => {
  const { call, part } = embed();
  part("talk").click();
  const gateway = await open();
  document.body.append(document.createElement("div"));
  document.body.firstElementChild!.before(call);
  await settle();
  assert.equal(call.session!.state, "connected");
  call.remove();
  await settle();
  assert.equal(call.session!.state, "disconnected");
  assert.equal(gateway.of("session.end").length, 1);
});

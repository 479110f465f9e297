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

/** An element in a page, with access to its parts. */
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

test("one tag is a complete client", async () => {
  const { call, part } = embed({ agent: "sales", "conversation-id": "c-7", label: "Call us", "label-end": "Bye" });
  const reported: string[] = [];
  call.addEventListener("connected", () => reported.push("connected"));
  call.addEventListener("disconnected", (event) => reported.push((event as CustomEvent).detail.reason));
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
  assert.deepEqual([...part("lines").children].map((one) => [one.getAttribute("part"), one.textContent]), [["line assistant", "Agent: <b>Good</b> day"]]);

  gateway.say({ ...line, seq: 4, id: "u", role: "user", text: "Thanks" });
  assert.equal(part("lines").lastElementChild!.textContent, "You: Thanks");

  part("talk").click();
  gateway.say({ type: "session.ended", seq: 5, reason: "client_ended" });
  gateway.drop(1000);
  await settle();
  assert.deepEqual(reported, ["connected", "client_ended"]);
  assert.equal(part("talk").textContent, "Call us");
});

test("a question is shown completely and answered once", async () => {
  const { part } = embed();
  part("talk").click();
  const gateway = await open();
  const question = { type: "confirmation.request", seq: 2, token: "cf_1", tool: "pay", args: { to: "Bob\u202e" }, preview: "Pay Bob\u202e", expires_at: "2026-11-20T10:00:00.000Z" };
  gateway.say(question);
  const [shown] = [...part("questions").children] as [HTMLElement];
  assert.match(shown.textContent!, /Pay Bob\\u202e.*pay \{.*"to": "Bob\\u202e"/s);
  const [approve, decline] = [...shown.querySelectorAll("button")] as [HTMLButtonElement, HTMLButtonElement];
  // It is announced without moving the focus.
  assert.deepEqual([part("asked").getAttribute("role"), part("asked").textContent], ["alert", "Needs your approval: Pay Bob\\u202e"]);
  assert.equal(part("questions").contains(document.activeElement), false);
  approve.focus();
  approve.click();
  decline.click();
  assert.deepEqual(gateway.of("confirmation.resolve"), [{ type: "confirmation.resolve", token: "cf_1", approved: true }]);
  gateway.say({ type: "error", seq: 3, code: "store_unavailable", message: "Not now.", retryable: true });
  assert.equal(approve.disabled, false);
  gateway.say({ type: "confirmation.ended", seq: 4, token: "cf_1", tool: "pay", outcome: "approved" });
  assert.equal(part("questions").children.length, 0);
  assert.equal(part("asked").textContent, "");
});

test("focus moves from an answered question to the next one, then to the first button", async () => {
  const { call, part } = embed();
  part("talk").click();
  const gateway = await open();
  const question = { type: "confirmation.request", tool: "pay", args: {}, expires_at: "2026-11-20T10:00:00.000Z" };
  gateway.say({ ...question, seq: 2, token: "cf_1", preview: "Pay Bob" });
  gateway.say({ ...question, seq: 3, token: "cf_2", preview: "Pay Eve" });
  const [first, second] = [...part("questions").children] as [HTMLElement, HTMLElement];
  const held = (): Element | null => call.shadowRoot!.activeElement;
  first.querySelector("button")!.focus();
  first.querySelector("button")!.click();
  assert.equal(held(), first);
  gateway.say({ type: "confirmation.ended", seq: 4, token: "cf_1", tool: "pay", outcome: "approved" });
  assert.equal(held(), second);
  gateway.say({ type: "confirmation.ended", seq: 5, token: "cf_2", tool: "pay", outcome: "expired" });
  assert.equal(held(), part("talk"));
});

test("Mute appears with a microphone and shows its state", async () => {
  const { call, part } = embed({ "label-unmute": "Speak" });
  part("talk").click();
  await open();
  assert.equal(part("mute").hidden, true, "there is no microphone");
  Object.defineProperty(call.session!.microphone, "state", { get: () => (call.session!.muted ? "muted" : "live") });
  part("mute").click();
  assert.deepEqual([call.session!.muted, part("mute").textContent, part("mute").getAttribute("part"), part("state").textContent], [true, "Speak", "button mute muted", "listening, muted"]);
  part("mute").click();
  assert.deepEqual([call.session!.muted, part("mute").textContent, part("mute").hidden, part("state").textContent], [false, "Mute", false, "listening"]);
});

test("an error is shown as an alert until the next call", async () => {
  const { part } = embed();
  part("talk").click();
  const gateway = await open();
  gateway.say({ type: "error", seq: 2, code: "no_answer", message: "The model gave no answer.", retryable: true });
  assert.deepEqual([part("error").hidden, part("error").textContent], [false, "The model gave no answer. Trying again may help."]);
  assert.equal(part("state").textContent, "listening");
  part("talk").click();
  gateway.drop(1000);
  await settle();
  part("talk").click();
  assert.equal(part("error").hidden, true);
});

test("the page's backend gives a ticket for each connection", async () => {
  const asked = vi.fn(async () => new Response('{"ticket":"t-1"}'));
  vi.stubGlobal("fetch", asked);
  const { part } = embed({ "ticket-url": "/ticket" });
  part("talk").click();
  const gateway = await open();
  assert.deepEqual(asked.mock.calls[0], ["/ticket", { method: "POST" }]);
  assert.equal(gateway.of("session.start")[0]!.ticket, "t-1");
});

test("removal from the page ends the call, a move does not", async () => {
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

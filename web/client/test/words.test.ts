import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { afterEach, test, vi } from "vitest";
import { VoiceError, closeError, gatewayError } from "../src/errors.js";
import type { ErrorMessage } from "../src/protocol/messages.js";
import { WORDS, ofClose, ofGateway } from "../src/words.js";

const said = (code: string, more: Partial<ErrorMessage> = {}): ErrorMessage => ({ type: "error", seq: 1, code, message: "What the gateway says.", retryable: false, ...more });

const CLOSE_CODES = [1001, 1005, 1006, 1008, 1009, 1011, 4000, 4001, 4002, 4003, 4004, 4005, 4029, 4500, 4501, 4502, 4503, 4504, 4505];
const GATEWAY_CODES = ["ticket_missing", "ticket_wrong", "ticket_origin", "ticket_used", "ticket_expired", "confirmation_unknown", "conversation_busy", "internal", "blocked"];

afterEach(() => vi.useRealTimers());

test("every error has short, complete sentences", () => {
  const all = [...Object.values(WORDS), ...CLOSE_CODES.map((code) => ofClose(code)), ...GATEWAY_CODES.map((code) => ofGateway(said(code)))];
  for (const { message, advice } of all) {
    assert.match(message, /^[A-Z].*\.$/);
    assert.match(advice, /^[A-Z].*\.$/);
    assert.ok(message.length + advice.length <= 120, `${message} ${advice}`);
  }
});

test("a VoiceError has its code's text, or the given one", () => {
  const plain = new VoiceError("unreachable");
  assert.equal(plain.message, "The gateway cannot be reached.");
  assert.match(plain.advice, /network/);
  assert.equal(plain.retryable, false);
  assert.equal("cause" in plain, false);
  const cause = new Error("why");
  const own = new VoiceError("lost", "Gone.", { advice: "Come back.", cause });
  assert.deepEqual([own.message, own.advice, own.cause, own.name], ["Gone.", "Come back.", cause, "VoiceError"]);
});

test("an expected end of a connection is no error", () => {
  assert.equal(closeError(1000, null), undefined);
});

test("a close code decides whether a retry may help", () => {
  const helps = CLOSE_CODES.filter((code) => closeError(code, null)?.retryable);
  assert.deepEqual(helps, [1001, 1005, 1006, 1011, 4000, 4001, 4002, 4003, 4004, 4005, 4029]);
  assert.match(closeError(4999, null)?.advice ?? "", /not help \(code 4999\)/);
  assert.match(closeError(4499, null)?.advice ?? "", /in a moment \(code 4499\)/);
  assert.equal(closeError(1006, null)?.code, "lost");
  assert.equal(closeError(4004, null)?.code, "closed");
});

test("the gateway's last error is the reason", () => {
  const error = closeError(4001, said("provider_unavailable", { message: "The voice model cannot be reached.", retryable: true }));
  assert.deepEqual([error?.code, error?.gatewayCode, error?.closeCode, error?.message], ["gateway", "provider_unavailable", 4001, "The voice model cannot be reached."]);
  assert.equal(error?.advice, "Trying again may help.");
  assert.equal(gatewayError(said("odd_thing")).advice, "Code: odd_thing.");
});

test("each ticket error has its own text", () => {
  const said5 = ["ticket_missing", "ticket_wrong", "ticket_origin", "ticket_used", "ticket_expired"].map((code) => gatewayError(said(code)).message);
  assert.equal(new Set(said5).size, 5);
  assert.ok(!said5.includes("What the gateway says."));
});

test("no two codes have the same message", () => {
  const messages = Object.values(WORDS).map(({ message }) => message);
  assert.deepEqual(messages.filter((message, i) => messages.indexOf(message) !== i), []);
});

test("a block includes its end, with the day if it is not today", () => {
  vi.useFakeTimers({ now: Date.parse("2026-11-20T10:00:00Z") });
  const soon = gatewayError(said("blocked", { until: "2026-11-20T10:20:00.000Z" })).message;
  const far = gatewayError(said("blocked", { until: "2026-12-24T10:20:00.000Z" })).message;
  assert.match(soon, /^You are blocked until .*20/);
  assert.doesNotMatch(soon, /2026/);
  assert.match(far, /2026/);
  assert.equal(gatewayError(said("blocked", { until: "soon" })).message, "What the gateway says.");
});

test("a code that is a property of Object has no text", () => {
  assert.equal(gatewayError(said("constructor")).message, "What the gateway says.");
});

test("docs/clients.md lists every code", () => {
  const page = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
  const table = page.slice(page.indexOf("## Error codes"), page.indexOf("## If you write your own"));
  const cells = [...table.matchAll(/^- ((?:`\w+`(?:, )?)+): /gm)].flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, code]) => code!));
  assert.deepEqual(cells.sort(), Object.keys(WORDS).sort());
});

test("every page and snippet gets a ticket in the same way", () => {
  const root = new URL("../../../", import.meta.url);
  const pages = readdirSync(new URL("docs/", root)).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
  const files = [...pages, "README.md", "web/README.md", "web/client/README.md", "web/react/README.md", "web/client/test/packed/use.ts", "web/console/src/model/snippet.ts"];
  const ways = files.flatMap((name) => [...readFileSync(new URL(name, root), "utf8").matchAll(/ticket: .*fetch\("\/ticket".*/g)].map(([line]) => ({ name, line })));
  const others = ways.filter(({ line }) => !line.startsWith('ticket: async () => (await (await fetch("/ticket", { method: "POST" })).json()).ticket'));
  assert.deepEqual(others, []);
  assert.equal(ways.length, 5);
});

// @vitest-environment happy-dom
// A component with unchanged property objects is not rendered again, so an object that is changed in place leaves an
// old value on the page. These tests find this in every panel by playing a whole recorded conversation.
import assert from "node:assert/strict";
import { options, render, type VNode } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, test, vi } from "vitest";
import { Conversation } from "../src/model/conversation.js";
import { Instruments } from "../src/instruments.js";
import { InstrumentsPanel } from "../src/panels/instruments.js";
import { LineView } from "../src/panels/lines.js";
import type { Console } from "../src/control/console.js";
import { View, type Tab } from "../src/panels/view.js";
import { TABS } from "../src/panels/words-instruments.js";
import { recorded } from "./recorded.js";

let hosts: HTMLElement[] = [];
const drawn = options.vnode;

/** Freezes the plain objects and arrays in a component's properties: changing one of them later throws. */
function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value) || !(Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype) || "__v" in value) {
    return;
  }
  Object.freeze(value);
  Object.values(value).forEach(freeze);
}

beforeEach(() => {
  vi.spyOn(performance, "now").mockReturnValue(recorded().at(-1)!.at); // running items end at the same time everywhere
  options.vnode = (node: VNode) => {
    if (typeof node.type === "function") {
      for (const [name, value] of Object.entries(node.props)) {
        if (name !== "children") {
          freeze(value);
        }
      }
    }
    drawn?.(node);
  };
});

afterEach(() => {
  options.vnode = drawn!;
  hosts.forEach((host) => render(null, host));
  hosts.forEach((host) => host.remove());
  hosts = [];
  vi.restoreAllMocks();
});

function place(): HTMLElement {
  const host = document.createElement("div");
  document.body.append(host);
  hosts.push(host);
  return host;
}

/** The visible content, without the ids that each render creates. */
function shown(host: HTMLElement): string {
  return host.innerHTML.replaceAll(/ (id|aria-controls|aria-labelledby|aria-describedby|for)="[^"]*"/g, "");
}

function same(host: HTMLElement, anew: HTMLElement, at: number): void {
  const [was, is] = [shown(host), shown(anew)];
  const from = [...was].findIndex((char, i) => char !== is[i]);
  assert.ok(was === is, `at ${at} ms it shows …${was.slice(from - 80, from + 80)}… instead of …${is.slice(from - 80, from + 80)}…`);
}

/** Expands all of these. A signal is set only if necessary, because it renders its components. */
function open(shown: View["turns"], names: readonly string[]): void {
  if (names.some((name) => !shown.value.has(name))) {
    shown.value = new Set(names);
  }
}

test.each(Object.keys(TABS) as Tab[])("at every event, the panel %s equals a fresh render", async (tab) => {
  const due: (() => void)[] = [];
  const instruments = new Instruments((show) => due.push(show));
  const view = new View();
  view.tab.value = tab;
  const panel = () => <InstrumentsPanel instruments={instruments} view={view} stats={() => null} simulator={false} />;
  const host = place();
  await act(() => render(panel(), host));
  const compare = async (at: number): Promise<void> => {
    await act(() => due.splice(0).forEach((show) => show()));
    const anew = place();
    await act(() => render(panel(), anew));
    same(host, anew, at);
    render(null, hosts.pop()!);
    anew.remove();
  };
  for (const [n, happening] of recorded().entries()) {
    instruments.take(happening);
    open(view.calls, instruments.tools.turns.flatMap(({ key, calls }) => calls.map(({ id }) => `${key} ${id}`)));
    open(view.turns, instruments.turns.list.map(({ key }) => key));
    const type = happening.kind === "received" ? (happening.message as { type: string }).type : happening.kind;
    const report = type === "noticed" && (happening as { name: string }).name === "played"; // draws only the log
    if (happening.kind !== "uplink" && happening.kind !== "downlink" && happening.kind !== "sent" && !report && (n % 20 === 0 || /^(turn|tool|confirmation)/.test(type))) {
      await compare(happening.at);
    }
  }
  await compare(-1);
}, 120_000);

test("at every event, the conversation's lines equal a fresh render", async () => {
  const conversation = new Conversation();
  const lines = () => <div>{conversation.transcript.lines.map((line) => <LineView key={line.key} line={line} console={{} as Console} />)}</div>;
  const host = place();
  for (const happening of recorded()) {
    conversation.take(happening);
    if (happening.kind === "received") {
      await act(() => render(lines(), host));
      const anew = place();
      await act(() => render(lines(), anew));
      same(host, anew, happening.at);
      render(null, hosts.pop()!);
      anew.remove();
    }
  }
  assert.ok(conversation.transcript.lines.length > 10);
}, 120_000);

// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { signal } from "@preact/signals";
import { render } from "preact";
import { act } from "preact/test-utils";
import { test } from "vitest";
import type { Console } from "../src/control/console.js";
import { SILENT, type VoiceState } from "../src/model/voice.js";
import { TopBar } from "../src/panels/topbar.js";

test("the gateway is not shown as ready while the call cannot reach it", () => {
  document.body.innerHTML = `<div id="root"></div>`;
  const voice = signal<VoiceState>({ ...SILENT, phase: "open" });
  const console = { voice, gateway: signal("simulator"), lines: signal([]) } as unknown as Console;
  const nothing = (): void => undefined;
  act(() => render(<TopBar console={console} inside={false} onInside={nothing} onCalls={nothing} onAgents={nothing} onSetup={nothing} onHelp={nothing} />, document.getElementById("root")!));
  const shown = (): [string | undefined, string | null | undefined] => {
    const element = document.querySelector<HTMLElement>(".gateway");
    return [element?.dataset["state"], element?.textContent];
  };
  assert.equal(shown()[0], "simulator");
  act(() => void (voice.value = { ...voice.value, phase: "reconnecting" }));
  assert.deepEqual(shown(), ["reconnecting", "Reconnecting"]);
  act(() => void (voice.value = { ...voice.value, phase: "open" }));
  assert.equal(shown()[0], "simulator");
});

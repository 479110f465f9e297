import assert from "node:assert/strict";
import { test } from "vitest";
import { DEFAULTS } from "../src/model/settings.js";
import { snippet } from "../src/model/snippet.js";

const PAGE = "https://gateway.example.org/console/?agent=billing#code=s3cret";
const ALL = {
  ...DEFAULTS, provider: "openai", agent: "billing", voice: 'ma"rin', pendingRequest: "Where is\nmy bill?", turns: "pushToTalk", inputRate: 8000, outputRate: 8000,
  microphone: "device-1", speaker: "device-2", volume: 0.5, echoCancellation: false, noiseSuppression: false,
} as const;

test("code for the defaults needs only an address and a ticket", () => {
  const code = snippet("javascript", DEFAULTS, "http://127.0.0.1:8080/");
  assert.match(code, /connect\(\{\n {4}url: "ws:\/\/127\.0\.0\.1:8080\/v1\/voice",\n/);
  assert.match(code, /POST \/v1\/sessions \{"user":"…"\}/);
  assert.doesNotMatch(code, /provider|voice:|Rate|microphone|volume|turnDetection/);
});

test("code contains all settings, without secrets and local devices", () => {
  for (const kind of ["javascript", "react"] as const) {
    const code = snippet(kind, ALL, PAGE);
    for (const part of ['url: "wss://gateway.example.org/console/v1/voice",', 'provider: "openai"', String.raw`voice: "ma\"rin"`, 'turnDetection: "client"', "inputRate: 8000", "outputRate: 8000", "microphone: { echoCancellation: false, noiseSuppression: false }", "speaker.volume = 0.5"]) {
      assert.ok(code.includes(part), `${kind} has ${part}: ${code}`);
    }
    assert.ok(code.includes(String.raw`{"user":"…","agent":"billing","pending_request":"Where is\nmy bill?"}`), "the server's part is one line");
    assert.doesNotMatch(code, /s3cret|device-/);
  }
});

test("the code compiles", async () => {
  const { rolldown } = await import("rolldown");
  for (const kind of ["javascript", "react"] as const) {
    for (const settings of [DEFAULTS, ALL]) {
      const name = `\0code.${kind === "react" ? "jsx" : "js"}`;
      const bundle = await rolldown({
        input: name,
        external: /^(@voicegw|react)/,
        plugins: [{ name: "code", resolveId: (id: string) => (id === name ? id : null), load: (id: string) => (id === name ? { code: snippet(kind, settings, PAGE), moduleType: kind === "react" ? "jsx" : "js" } : null) }],
      });
      const { output } = await bundle.generate({});
      await bundle.close();
      assert.match(output[0].code, /@voicegw/);
    }
  }
});

// What a server does with the packages, run with node: they can be imported and rendered, and
// only a conversation fails, with a reason.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { VoiceError, connect, keptSession, listMicrophones } from "@voicegw/client";
import { chat } from "@voicegw/client/chat";
import { useConfirmations, useLevel, useTranscript, useVoiceSession } from "@voicegw/react";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

await assert.rejects(connect(), (error) => error instanceof VoiceError && error.code === "no_browser");
assert.equal(keptSession(), null);
assert.deepEqual(await listMicrophones(), []);
assert.equal(typeof chat, "function");

function Conversation() {
  const call = useVoiceSession();
  const said = [useTranscript(call.session).length, useConfirmations(call.session).length, useLevel(call.session, "user")];
  return createElement("p", null, `${call.state} ${said.join(" ")}`);
}
assert.equal(renderToString(createElement(Conversation)), "<p>idle 0 0 0</p>");

const require = createRequire(import.meta.url);
for (const name of ["client", "react"]) {
  assert.equal(require(`@voicegw/${name}/package.json`).license, "Apache-2.0");
}
console.log("test-pack: a server can import and render the packages");

// A relay as one writes it in Node: audio as it is on the client's side, Gemini Live's JSON
// on the provider's. It does what any such relay must and nothing else: no limits, no
// tools, no interruption, no queue of its own.
//
//     node relay.mjs ws://HOST:PORT     prints its address, ends with its input

import { WebSocket, WebSocketServer } from "ws";

const method = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
const provider = process.argv[2] + method;
const options = { perMessageDeflate: false };

const server = new WebSocketServer({ ...options, host: "127.0.0.1", port: 0, path: "/v1/voice" });
server.on("listening", () => console.log(`127.0.0.1:${server.address().port}`));
server.on("connection", (client) => client.once("message", () => join(client)));
process.stdin.on("end", () => process.exit(0)).resume();

// join opens the provider's side of a client that has said session.start.
function join(client) {
  const model = new WebSocket(provider, options);
  model.on("open", () => model.send(JSON.stringify({ setup: { model: "models/bench" } })));
  model.on("message", (data) => fromModel(client, JSON.parse(data)));
  model.on("close", () => client.close());
  model.on("error", () => client.close());
  client.on("message", (data, isBinary) => {
    if (isBinary && model.readyState === WebSocket.OPEN) model.send(audioMessage(data));
  });
  client.on("close", () => model.close());
  client.on("error", () => model.close());
}

function audioMessage(pcm) {
  return JSON.stringify({
    realtimeInput: { audio: { mimeType: "audio/pcm;rate=16000", data: pcm.toString("base64") } },
  });
}

function fromModel(client, message) {
  if (message.setupComplete) client.send(JSON.stringify({ type: "session.started" }));
  for (const part of message.serverContent?.modelTurn?.parts ?? []) {
    if (part.inlineData) client.send(Buffer.from(part.inlineData.data, "base64"));
  }
}

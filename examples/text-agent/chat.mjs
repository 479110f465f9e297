// A conversation with the gateway's text agent: each line of the input is a message.
import { createInterface } from "node:readline/promises";

const gateway = process.argv[2] ?? "http://127.0.0.1:8080";
const key = process.env.VOICEGW_API_KEY;
let conversation;

for await (const message of createInterface({ input: process.stdin })) {
  await answer({ message, message_id: crypto.randomUUID(), ...(conversation && { conversation_id: conversation }) });
}

async function answer(body) {
  const response = await fetch(`${gateway}/v1/chat`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  });
  if (!response.ok) {
    throw new Error((await response.json()).error.message);
  }
  // Server-sent events: lines "data: {…}", and others that repeat their type and number.
  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    lines.filter((line) => line.startsWith("data: ")).forEach((line) => show(JSON.parse(line.slice(6))));
  }
}

function show(event) {
  switch (event.type) {
    case "turn.started":
      conversation = event.conversation_id;
      break;
    case "tool.started":
      console.log(`(${event.tool})`);
      break;
    case "text.done":
      console.log(event.text);
      break;
    case "confirmation.request": // POST /v1/confirmations answers it
      console.log(`Needs your approval: ${event.preview}`);
      break;
    case "voice_session_start": // the ticket is a secret
      console.log(`Continue by voice at ${event.url} within 60 seconds.`);
      break;
    case "error":
      console.error(event.message);
      break;
  }
}

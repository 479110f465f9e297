// Code that opens a call with these settings in the user's own page.
import type { ConnectOptions } from "@voicegw/client";
import { DEFAULTS, type Settings } from "./settings.js";

export type Kind = "javascript" | "react";

/**
 * `page` is this page's address, from which the gateway's is derived. The code contains no key, ticket or
 * device.
 */
export function snippet(kind: Kind, settings: Settings, page: string): string {
  return kind === "react" ? react(settings, page) : javascript(settings, page);
}

function javascript(settings: Settings, page: string): string {
  const volume = settings.volume === DEFAULTS.volume ? "" : `  session.speaker.volume = ${settings.volume};\n`;
  return `import { connect } from "@voicegw/client";

// From a click: browsers start audio only then.
document.querySelector("#talk").addEventListener("click", async () => {
  const session = await connect({
${options(settings, page, "    ")}  });
${volume}  session.on("transcript", ({ role, text }) => console.log(role, text));
  session.on("error", (error) => console.warn(error.message, error.advice));
});
`;
}

function react(settings: Settings, page: string): string {
  const volume = settings.volume === DEFAULTS.volume ? "" : `  useEffect(() => {\n    if (call.session) call.session.speaker.volume = ${settings.volume};\n  }, [call.session]);\n`;
  return `${volume === "" ? "" : 'import { useEffect } from "react";\n'}import { useTranscript, useVoiceSession } from "@voicegw/react";

export function Conversation() {
  const call = useVoiceSession({
${options(settings, page, "    ")}  });
${volume}  const lines = useTranscript(call.session);
  const running = call.state !== "idle" && call.state !== "disconnected";
  return (
    <>
      <button onClick={running ? call.disconnect : call.connect}>{running ? "Hang up" : "Talk"}</button>
      {call.error && <p role="alert">{call.error.message} {call.error.advice}</p>}
      {lines.map((line) => <p key={line.id}>{line.role}: {line.text}</p>)}
    </>
  );
}
`;
}

/** The options of connect, one per line, without defaults. */
function options(settings: Settings, page: string, indent: string): string {
  const given = connectOptions(settings, page);
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${literal(value)},`);
  const [url, ...others] = lines;
  return [url!, ...ticketLines(settings), ...others].map((line) => `${indent}${line}\n`).join("");
}

function connectOptions(settings: Settings, page: string): ConnectOptions {
  const { provider, voice, turns, inputRate, outputRate, echoCancellation, noiseSuppression } = settings;
  const url = new URL("v1/voice", page);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  const microphone = { ...(echoCancellation ? {} : { echoCancellation }), ...(noiseSuppression ? {} : { noiseSuppression }) };
  return {
    url: url.href,
    ...(provider === "" ? {} : { provider }),
    ...(voice === "" ? {} : { voice }),
    ...(turns === "pushToTalk" ? { turnDetection: "client" as const } : {}),
    ...(inputRate === DEFAULTS.inputRate ? {} : { inputRate }),
    ...(outputRate === DEFAULTS.outputRate ? {} : { outputRate }),
    ...(Object.keys(microphone).length === 0 ? {} : { microphone }),
  };
}

/** The ticket determines the user, the agent and the first question. */
function ticketLines({ agent, pendingRequest }: Settings): string[] {
  const body = { user: "…", ...(agent === "" ? {} : { agent }), ...(pendingRequest === "" ? {} : { pending_request: pendingRequest }) };
  return [
    "// Your server asks the gateway, with its key, and passes the answer on (docs/clients.md):",
    `// POST /v1/sessions ${JSON.stringify(body)}`,
    'ticket: async () => (await (await fetch("/ticket", { method: "POST" })).json()).ticket,',
  ];
}

/** A value as a JavaScript literal. */
function literal(value: unknown): string {
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value);
  }
  return `{ ${Object.entries(value).map(([name, inner]) => `${name}: ${JSON.stringify(inner)}`).join(", ")} }`;
}

// A program that uses the packages, compiled against the packed ones: scripts/test-pack.sh.
import { Microphone, VoiceError, VoiceSession, connect, gatewayError, keptSession, listMicrophones, type AgentState, type ConnectOptions, type Disconnected, type KeptSession, type ServerMessage, type Stats, type TurnLatency } from "@voicegw/client";
import { VoicegwCall } from "@voicegw/client/element";
import { chat, parseServerSentEvents, type ChatTurn } from "@voicegw/client/chat";
import type { JSX } from "react";
import { useConfirmations, useLevel, useTranscript, useVoiceSession, type Confirmation, type TranscriptLine } from "@voicegw/react";

const options: ConnectOptions = {
  url: new URL("wss://gateway.example.org/v1/voice"),
  ticket: async () => (await (await fetch("/ticket", { method: "POST" })).json()).ticket,
  inputRate: 16000,
  microphone: { echoCancellation: true },
  reconnect: { tries: 3 },
  signal: AbortSignal.timeout(60_000),
};

export async function talk(): Promise<Disconnected> {
  const session = await connect(options);
  const off: () => void = session.on("transcript", ({ role, text, final }) => console.log(role, text, final));
  session.once("confirmation.request", ({ token, args_source }) => (confirm(args_source) ? session.approve(token) : session.decline(token)));
  session.on("latency", ({ totalMs, networkMs }: TurnLatency) => console.log(totalMs - networkMs));
  session.on("disconnected", ({ error, handback }) => console.log(error?.message, error?.advice, handback?.summary));
  const id: string = session.sendText("Hello");
  const failed = (error: VoiceError): void => console.warn(error.message, error.advice, error.gatewayMessage?.code);
  session.on("error", failed);
  session.off("error", failed);
  session.on("connected", ({ session_id }) => console.log(session_id));
  session.on("agentState", (now: AgentState) => console.log(now, session.agentState));
  session.muted = !session.muted;
  const stream: MediaStream | null = session.speaker.stream;
  const loudest: number = Math.max(...session.speaker.frequencyData(), ...session.microphone.frequencyData());
  console.log(stream?.id, loudest);
  const stats: Stats = session.stats();
  console.log(id, stats.rttMs ?? "no round trip yet", session.info?.session_id, (await listMicrophones())[0]?.label);
  off();
  return session.disconnect();
}

/** Resumes a call after a reload. */
export async function goOn(): Promise<VoiceSession | null> {
  const kept: KeptSession | null = keptSession();
  return kept?.leftAt == null ? null : connect({ ...options, resume: "only" });
}

// @ts-expect-error: there is no such event.
new VoiceSession().on("transcripts", () => undefined);
// @ts-expect-error: microphones are a session's own.
new Microphone();
// @ts-expect-error: there is no such rate.
new VoiceSession({ inputRate: 11025 });

/** Lists every message type: an added one is a compile error here. */
export function kindOf(message: ServerMessage): "voice" | "text" | "both" {
  switch (message.type) {
    case "session.started":
    case "session.moving":
    case "session.ending":
    case "session.ended":
    case "audio.start":
    case "audio.end":
    case "audio.flush":
    case "speech.started":
    case "speech.stopped":
    case "transcript":
    case "turn.started":
    case "turn.ended":
    case "agent.switched":
    case "claim.unmatched":
    case "answer.stopped":
    case "provider.reconnecting":
    case "provider.reconnected":
    case "inspect.call":
    case "inspect.state":
    case "inspect.intent":
    case "pong":
      return "voice";
    case "text.delta":
    case "text.done":
    case "tool.call":
    case "voice_session_start":
    case "usage":
    case "done":
      return "text";
    case "tool.started":
    case "tool.progress":
    case "tool.message":
    case "job.progress":
    case "tool.ended":
    case "confirmation.request":
    case "confirmation.ended":
    case "timeout":
    case "ui.image":
    case "error":
      return "both";
    default: {
      const forgotten: never = message;
      return forgotten;
    }
  }
}

export async function ask(turn: ChatTurn): Promise<string> {
  let answer = "";
  try {
    for await (const message of chat("/v1/chat", turn, AbortSignal.timeout(30_000))) {
      answer += message.type === "text.delta" ? message.text : "";
    }
  } catch (error) {
    return error instanceof VoiceError ? `${error.message} ${error.advice}` : String(error);
  }
  return answer;
}

export async function count(body: ReadableStream<Uint8Array>): Promise<number> {
  let events = 0;
  for await (const { data } of parseServerSentEvents(body)) {
    events += data.length > 0 ? 1 : 0;
  }
  return events;
}

export function useConversation(): { lines: readonly TranscriptLine[]; questions: readonly Confirmation[]; level: number; start: () => Promise<void> } {
  const call = useVoiceSession(options);
  return { lines: useTranscript(call.session), questions: useConfirmations(call.session), level: useLevel(call.session, "model"), start: call.connect };
}

export const shown: string = gatewayError({ type: "error", seq: 0, code: "blocked", message: "…", retryable: false }).advice;

/** An element whose agent may ask the page, with context and an image. */
export async function embed(picture: Blob): Promise<void> {
  const call = document.body.appendChild(new VoicegwCall());
  call.options = { ...options, tools: { title: { description: "Says the page's title.", readOnly: true, run: () => document.title } } };
  await call.connect();
  call.session?.sendContext("The user is looking at the picture that follows.");
  await call.session?.sendImage(picture);
}

/** The element of a page's own HTML has its types by its name. */
export function listen(said: (text: string) => void): void {
  const call = document.querySelector("voicegw-call");
  call?.addEventListener("transcript", ({ detail }) => said(detail.text));
  call?.addEventListener("error", ({ detail }) => said(detail.advice));
  call?.addEventListener("disconnected", ({ detail }) => said(detail.reason));
  void call?.connect();
}

/** And in JSX. */
export const props: JSX.IntrinsicElements["voicegw-call"] = { url: "wss://gateway.example.org/v1/voice", "ticket-url": "/ticket", label: "Talk to us", "label-mute": "Quiet" };

"use client";

// The conversation of both applications in React.
import { useConfirmations, useLevel, useTranscript, useVoiceSession } from "@voicegw/react";
import { useState, type FormEvent } from "react";

export function Conversation() {
  const call = useVoiceSession({ url: typeof location === "undefined" ? "" : (new URLSearchParams(location.search).get("gateway") ?? "v1/voice") });
  const lines = useTranscript(call.session);
  const questions = useConfirmations(call.session);
  const level = useLevel(call.session, "model");
  const [text, setText] = useState("");
  const running = call.state !== "idle" && call.state !== "disconnected";
  const problem = call.error ?? call.warning;
  const send = (event: FormEvent): void => {
    event.preventDefault();
    call.session?.sendText(text);
    setText("");
  };
  return (
    <main>
      <button id="talk" onClick={running ? call.disconnect : call.connect}>{running ? "Hang up" : "Talk"}</button>
      <span id="state">{problem?.message ?? call.disconnected?.reason ?? (call.state === "connected" && call.agentState !== "listening" ? call.agentState : call.state)}</span>
      <form onSubmit={send}>
        <input id="text" value={text} onChange={({ target }) => setText(target.value)} autoComplete="off" />
      </form>
      <meter value={level} />
      <div id="lines">
        {lines.map(({ id, role, text }) => <p key={id}>{role}: {text}</p>)}
        {questions.map(({ token, preview, approve, decline }) => <p key={token}>{preview} <button onClick={approve}>Approve</button> <button onClick={decline}>Decline</button></p>)}
      </div>
    </main>
  );
}

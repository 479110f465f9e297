"use client";

/**
 * React hooks for @voicegw/client.
 *
 *     const call = useVoiceSession({ url: "wss://gateway.example.org/v1/voice" });
 *     const lines = useTranscript(call.session);
 *     return <button onClick={call.connect}>Talk</button>;
 */
export { useVoiceSession, type VoiceCall, type VoiceControls } from "./call.js";
export { useTranscript, type TranscriptLine } from "./transcript.js";
export { useLevel } from "./level.js";
export { useConfirmations, type Confirmation } from "./confirmations.js";
export type { VoicegwCallAttributes } from "./element.js";

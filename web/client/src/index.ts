/**
 * Talk to a voicegw gateway from a browser.
 *
 *     import { connect } from "@voicegw/client";
 *     const session = await connect({ url: "wss://gateway.example.org/v1/voice" });
 *     session.on("transcript", (line) => console.log(line.role, line.text));
 */
export { connect } from "./connect.js";
export { VoiceSession } from "./session.js";
export type { AgentState } from "./agentstate.js";
export { VoiceError, gatewayError, type VoiceErrorCode } from "./errors.js";
export { Emitter, type Disconnected, type LocalEvents, type MicrophoneState, type SessionState, type SpeakerState, type VoiceEvents } from "./events.js";
export type { ConnectOptions, MicrophoneOptions } from "./options.js";
export { keptSession, type KeptSession } from "./kept.js";
export type { ImageSource } from "./image.js";
export type { RetryOptions } from "./connection/retry.js";
export type { WorkletUrls } from "./audio/worklets/load.js";
export { askMicrophone } from "./audio/ask.js";
export { listMicrophones, listSpeakers, type Device } from "./audio/devices.js";
export type { Microphone } from "./audio/microphone.js";
export type { Speaker } from "./audio/speaker.js";
export type { Stats } from "./stats.js";
export type { TurnLatency } from "./latency.js";
export type { ClientTool, ClientTools } from "./tools.js";
export { parseServerMessage } from "./protocol/codec.js";
export type * from "./protocol/messages.js";

// A page in TypeScript without a framework, built by Vite.
import { connect, type VoiceError, type VoiceSession } from "@voicegw/client";

const part = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const state = part("state");
const text = part<HTMLInputElement>("text");
const url = new URLSearchParams(location.search).get("gateway") ?? "v1/voice";
let session: VoiceSession | undefined;

part("talk").onclick = async () => {
  if (session !== undefined) {
    const { reason } = await session.disconnect();
    state.textContent = reason;
    return;
  }
  const tell = (error: VoiceError): void => void (state.textContent = `${error.message} ${error.advice}`);
  try {
    session = await connect({ url });
  } catch (error) {
    tell(error as VoiceError);
    return;
  }
  state.textContent = session.state;
  session.on("agentState", (now) => (state.textContent = now));
  session.on("error", tell);
  session.on("transcript", ({ id, role, text }) => {
    const line = document.getElementById(id) ?? part("lines").appendChild(Object.assign(document.createElement("p"), { id }));
    line.textContent = `${role}: ${text}`;
  });
};
part<HTMLFormElement>("type").onsubmit = (event) => {
  event.preventDefault();
  session?.sendText(text.value);
  text.value = "";
};

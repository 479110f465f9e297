import type { ConnectOptions } from "./options.js";
import { VoiceSession } from "./session.js";

/**
 * Opens a conversation. Call it from a click or key press: browsers start audio only then.
 * Resolves when the gateway has opened the session; rejects with a VoiceError, also on a server
 * (`no_browser`).
 */
export async function connect(options: ConnectOptions = {}): Promise<VoiceSession> {
  const session = new VoiceSession(options);
  await session.open();
  return session;
}

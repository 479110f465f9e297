import type { ConnectOptions } from "./options.js";
import { VoiceSession } from "./session.js";

/**
 * Opens a conversation. Call it from a click or key press, because browsers start audio only then. Resolves
 * when the session is open. Rejects with a VoiceError, on a server with `no_browser`.
 */
export async function connect(options: ConnectOptions = {}): Promise<VoiceSession> {
  const session = new VoiceSession(options);
  await session.open();
  return session;
}

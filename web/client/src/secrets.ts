import type { LocalEvents } from "./events.js";
import type { ClientMessage } from "./protocol/messages.js";

/** The fields that hold a ticket, a resume token or a confirmation token. */
const SECRET = /^(ticket|token)$/;

/** A copy for logs: whoever reads a log must not be able to use what stands in it. */
export function withoutSecrets(message: ClientMessage): LocalEvents["sent"] {
  const text = JSON.stringify(message, (name, value: unknown) => (SECRET.test(name) ? "***" : value));
  return JSON.parse(text) as LocalEvents["sent"];
}

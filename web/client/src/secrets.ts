import type { LocalEvents } from "./events.js";
import type { ClientMessage, SessionStarted } from "./protocol/messages.js";

/** The fields that hold a ticket, a resume token or a confirmation token. */
const SECRET = /^(ticket|token)$/;

/** The same with stars in place of the resume token: only this library has a use for it. */
export function withoutToken(started: SessionStarted): SessionStarted {
  return started.resume_token === undefined ? started : { ...started, resume_token: "***" };
}

/** A copy for logs: whoever reads a log must not be able to use what stands in it. */
export function withoutSecrets(message: ClientMessage): LocalEvents["sent"] {
  const text = JSON.stringify(message, (name, value: unknown) => (SECRET.test(name) ? "***" : value));
  return JSON.parse(text) as LocalEvents["sent"];
}

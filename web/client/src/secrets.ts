import type { LocalEvents } from "./events.js";
import type { ClientMessage, SessionStarted } from "./protocol/messages.js";

/** The fields that hold a ticket, a resume token or a confirmation token. */
const SECRET = /^(ticket|token)$/;

/** Replaces the resume token, which only this library uses, with asterisks. */
export function withoutToken(started: SessionStarted): SessionStarted {
  return started.resume_token === undefined ? started : { ...started, resume_token: "***" };
}

/** Returns a copy for logs without secrets. */
export function withoutSecrets(message: ClientMessage): LocalEvents["sent"] {
  const text = JSON.stringify(message, (name, value: unknown) => (SECRET.test(name) ? "***" : value));
  return JSON.parse(text) as LocalEvents["sent"];
}

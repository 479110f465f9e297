import type { ConnectOptions } from "../options.js";
import type { SessionStart } from "../protocol/messages.js";
import { localTimeZone } from "../timezone.js";
import { declarations } from "../tools.js";

/** Credentials for resuming an earlier session. */
export interface Resume {
  session_id: string;
  /** A secret. */
  token: string;
}

/** The parts of session.start that differ between connections. */
export interface Opening {
  ticket: string | undefined;
  resume: SessionStart["resume"];
  conversation: string;
  /** The pending request has no answer yet. */
  pending: boolean;
}

/** Builds the first message of a connection. Undefined fields are not sent. */
export function sessionStart(o: ConnectOptions, { ticket, resume, conversation, pending }: Opening): SessionStart {
  const common = {
    type: "session.start",
    resume,
    input_rate: o.inputRate ?? 16000,
    output_rate: o.outputRate ?? 24000,
    turn_detection: o.turnDetection,
    inspect: o.inspect,
    client: { name: "@voicegw/client", version: CLIENT_VERSION, ...o.client },
    time_zone: o.timeZone ?? localTimeZone(),
    tools: declarations(o.tools),
  } as const;
  if (resume !== undefined) {
    // The other settings were fixed when the session was opened.
    return common;
  }
  return {
    ...common,
    ticket,
    provider: o.provider,
    agent: o.agent,
    voice: o.voice,
    pending_request: pending ? o.pendingRequest : undefined,
    // A ticket already names its conversation.
    conversation_id: ticket === undefined ? conversation : o.conversationId,
  };
}

/** Returns an id for a new conversation: 128 random bits. */
export function randomConversation(): string {
  const bits = crypto.getRandomValues(new Uint8Array(16));
  return `conv-${[...bits].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
}

import type { ConnectOptions } from "../options.js";
import type { SessionStart } from "../protocol/messages.js";

/** What an earlier session can be taken up with. */
export interface Resume {
  session_id: string;
  token: string;
}

/** What of session.start is different for each connection. */
export interface Opening {
  ticket: string | undefined;
  resume: (Resume & { last_seq: number }) | undefined;
  /** The conversation that goes on. */
  conversation: string;
  /** The pending request is still to be answered. */
  pending: boolean;
}

/** The first message of a connection. What is undefined in it is not sent. */
export function sessionStart(o: ConnectOptions, { ticket, resume, conversation, pending }: Opening): SessionStart {
  return {
    type: "session.start",
    ticket,
    resume,
    provider: o.provider,
    agent: o.agent,
    voice: o.voice,
    input_rate: o.inputRate ?? 16000,
    output_rate: o.outputRate ?? 24000,
    turn_detection: o.turnDetection,
    pending_request: pending ? o.pendingRequest : undefined,
    // A ticket has its own conversation.
    conversation_id: ticket === undefined ? conversation : o.conversationId,
    inspect: o.inspect,
    client: { name: "@voicegw/client", version: CLIENT_VERSION, ...o.client },
  };
}

/** A name for a conversation that has none: 128 random bits. */
export function randomConversation(): string {
  const bits = crypto.getRandomValues(new Uint8Array(16));
  return `conv-${[...bits].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
}

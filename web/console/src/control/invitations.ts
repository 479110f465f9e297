import type { VoiceSessionStart } from "@voicegw/client";

interface Invitation {
  ticket: string;
  timer: ReturnType<typeof setTimeout>;
}

/** The text agent's invitations to continue by voice. Their tickets are secrets and are never shown. */
export class Invitations {
  private readonly open = new Map<string, Invitation>();

  /** over is called with the name of an invitation that expired or was replaced. */
  constructor(private readonly over: (name: string) => void) {}

  /** Adds an invitation; now in ms since the epoch. Its name is the session's id. */
  came(message: VoiceSessionStart, now: number): void {
    this.clear();
    const end = Date.parse(message.expires_at ?? "");
    // If this machine's clock is wrong, assume a minute.
    const ms = end > now ? end - now : 60_000;
    this.open.set(message.sessionId, { ticket: message.ticket, timer: setTimeout(() => this.end(message.sessionId), ms) });
  }

  /** Returns the ticket of a valid invitation, once; otherwise undefined. */
  take(name: string): string | undefined {
    const invitation = this.open.get(name);
    clearTimeout(invitation?.timer);
    this.open.delete(name);
    return invitation?.ticket;
  }

  /** Ends all invitations. */
  clear(): void {
    for (const name of [...this.open.keys()]) {
      this.end(name);
    }
  }

  private end(name: string): void {
    if (this.take(name) !== undefined) {
      this.over(name);
    }
  }
}

import type { VoiceSessionStart } from "@voicegw/client";

interface Invitation {
  ticket: string;
  timer: ReturnType<typeof setTimeout>;
}

/**
 * Invitations of the text agent to go on by voice, with their tickets: those are secrets,
 * and stand in nothing that is shown.
 */
export class Invitations {
  private readonly open = new Map<string, Invitation>();

  /** over is called with the name of one that was not taken in time, or replaced by a newer one. */
  constructor(private readonly over: (name: string) => void) {}

  /** One came; now in ms since the epoch. Its name is the session's id. */
  came(message: VoiceSessionStart, now: number): void {
    this.clear();
    const end = Date.parse(message.expires_at ?? "");
    // A minute, where this machine's clock is wrong.
    const ms = end > now ? end - now : 60_000;
    this.open.set(message.sessionId, { ticket: message.ticket, timer: setTimeout(() => this.end(message.sessionId), ms) });
  }

  /** The ticket of one that can still be taken, once; undefined for any other. */
  take(name: string): string | undefined {
    const invitation = this.open.get(name);
    clearTimeout(invitation?.timer);
    this.open.delete(name);
    return invitation?.ticket;
  }

  /** None can be taken any more. */
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

/**
 * Numbers the turns of a call across its sessions. A gateway counts each session from 1, which would give two
 * turns the same number.
 */
export class TurnCount {
  private highest: number;

  /** `before`: the number of turns in the call's earlier sessions. */
  constructor(private earlier = 0) {
    this.highest = earlier;
  }

  /** The number of turns before this session. */
  get before(): number {
    return this.earlier;
  }

  /** Another session of the call begins. */
  renew(): void {
    this.earlier = this.highest;
  }

  /** Returns a message or event with the call's turn number; the same object if it does not change. */
  count<T extends object>(what: T): T {
    const { turn } = what as { turn?: unknown };
    if (typeof turn !== "number") {
      return what;
    }
    this.highest = Math.max(this.highest, this.earlier + turn);
    return this.earlier === 0 ? what : { ...what, turn: this.earlier + turn };
  }
}

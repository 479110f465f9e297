/**
 * Numbers the turns of a call through all of its sessions: a gateway counts each session from 1,
 * and a call that goes on in another session would show two turns of one number.
 */
export class TurnCount {
  private highest: number;

  /** `before`: how many turns the earlier sessions of the call had. */
  constructor(private earlier = 0) {
    this.highest = earlier;
  }

  /** How many turns the sessions before this one had. */
  get before(): number {
    return this.earlier;
  }

  /** Another session of the call begins. */
  renew(): void {
    this.earlier = this.highest;
  }

  /** A message or an event of the session with the call's number of its turn; the same object where that is its own. */
  count<T extends object>(what: T): T {
    const { turn } = what as { turn?: unknown };
    if (typeof turn !== "number") {
      return what;
    }
    this.highest = Math.max(this.highest, this.earlier + turn);
    return this.earlier === 0 ? what : { ...what, turn: this.earlier + turn };
  }
}

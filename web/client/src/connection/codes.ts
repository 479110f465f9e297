/** Close codes of passing failures: RFC 6455, and 1005 and 1012 to 1014, which proxies send. */
const PASSING = [1001, 1005, 1006, 1011, 1012, 1013, 1014];

/** The gateway is draining; another gateway continues the session. */
export const MOVING = 4007;
/** This client sent too much or connected too often. */
export const LIMIT = 4029;
/** Another connection resumed the session: another tab, or a copy of this one. */
export const DISPLACED = 4506;

/** The user decides whether to continue after these: silence, the maximum duration, a rate limit. */
const NOT_BY_ITSELF = [4004, 4005, LIMIT];

/** Reports whether a new connection may help after this close code; see docs/protocol.md. */
export function mayHelp(closeCode: number): boolean {
  return PASSING.includes(closeCode) || (closeCode >= 4000 && closeCode < 4500);
}

/** Reports whether an open conversation is restored without the user after this close code. */
export function reconnects(closeCode: number): boolean {
  return mayHelp(closeCode) && !NOT_BY_ITSELF.includes(closeCode);
}

/** Codes of RFC 6455 for what passes; 1005 and 1012 to 1014 are those of proxies. */
const PASSING = [1001, 1005, 1006, 1011, 1012, 1013, 1014];

/** The gateway is about to leave, and says that the session goes on elsewhere. */
export const MOVING = 4007;
/** This client has sent too much, or tried too often. */
export const LIMIT = 4029;
/** The session was taken up by another connection: another tab, or a copy of this one. */
export const DISPLACED = 4506;

/** Where the user decides: nobody spoke, the longest time is a limit, the gateway wants less of us. */
const NOT_BY_ITSELF = [4004, 4005, LIMIT];

/** Whether connecting again may help, by the close code: docs/protocol.md. */
export function mayHelp(closeCode: number): boolean {
  return PASSING.includes(closeCode) || (closeCode >= 4000 && closeCode < 4500);
}

/** Whether a conversation that was open is restored without the user, after this close code. */
export function reconnects(closeCode: number): boolean {
  return mayHelp(closeCode) && !NOT_BY_ITSELF.includes(closeCode);
}

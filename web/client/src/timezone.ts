/** The IANA name of this machine's time zone, such as Europe/Berlin; undefined where the browser does not tell. */
export function localTimeZone(): string | undefined {
  try {
    // Some browsers in a mode for privacy or without zone data return undefined or an empty text.
    return Intl.DateTimeFormat().resolvedOptions().timeZone || undefined;
  } catch {
    return undefined;
  }
}

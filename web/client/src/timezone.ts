/**
 * The IANA name of this machine's time zone, such as Europe/Berlin; undefined if the browser does not report
 * it.
 */
export function localTimeZone(): string | undefined {
  try {
    // In privacy modes or without zone data, some browsers return undefined or an empty text.
    return Intl.DateTimeFormat().resolvedOptions().timeZone || undefined;
  } catch {
    return undefined;
  }
}

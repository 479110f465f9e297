// Formats times in agents' texts (RFC 3339) for people.

const STAMP = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})/;
const RANGE = new RegExp(`(?:from )?(${STAMP.source})(?: (?:to|until|-|–) (${STAMP.source}))?`, "gi");
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;

/** Minutes east of UTC at a time on this machine. */
type Offset = (time: number) => number;
const here: Offset = (time) => -new Date(time).getTimezoneOffset();

/** Replaces times with the reader's: "on Tue 24 Nov 2026, 10:00 to 11:00 (your time, UTC+1)". */
export function readableTimes(text: string, offset: Offset = here): string {
  return text.replace(RANGE, (all: string, first: string, second: string | undefined) => {
    const [from, to] = [Date.parse(first), Date.parse(second ?? first)];
    if (Number.isNaN(from) || Number.isNaN(to)) {
      return all;
    }
    const begin = parts(from, offset);
    const end = parts(to, offset);
    const zone = `(your time, ${utc(offset(from))})`;
    const lead = /^from /i.test(all) ? "on " : "";
    if (second === undefined) {
      return `${lead}${begin.day}, ${begin.clock} ${zone}`;
    }
    return `${lead}${begin.day}, ${begin.clock} to ${begin.day === end.day ? "" : `${end.day}, `}${end.clock} ${zone}`;
  });
}

function parts(time: number, offset: Offset): { day: string; clock: string } {
  const local = new Date(time + offset(time) * 60_000);
  const two = (n: number): string => String(n).padStart(2, "0");
  const seconds = local.getUTCSeconds() === 0 ? "" : `:${two(local.getUTCSeconds())}`;
  return {
    day: `${DAYS[local.getUTCDay()]} ${local.getUTCDate()} ${MONTHS[local.getUTCMonth()]} ${local.getUTCFullYear()}`,
    clock: `${two(local.getUTCHours())}:${two(local.getUTCMinutes())}${seconds}`,
  };
}

/** UTC, UTC+1, UTC−3:30. */
function utc(minutes: number): string {
  const size = Math.abs(minutes);
  const rest = size % 60 === 0 ? "" : `:${String(size % 60).padStart(2, "0")}`;
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${rest}`;
}

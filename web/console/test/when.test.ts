import assert from "node:assert/strict";
import { test } from "vitest";
import { readableTimes } from "../src/model/when.js";

const text = 'Create the event "Review" from 2026-11-24T09:00:00Z to 2026-11-24T10:00:00Z. Invited: ada@example.org.';

test.each([
  ["an interval within a day, an hour east", text, 60, 'Create the event "Review" on Tue 24 Nov 2026, 10:00 to 11:00 (your time, UTC+1). Invited: ada@example.org.'],
  ["another offset than the reader's", "from 2026-11-24T09:00:00-05:00 to 2026-11-24T10:30:00-05:00", 0, "on Tue 24 Nov 2026, 14:00 to 15:30 (your time, UTC)"],
  ["over midnight, west by half an hour", "from 2026-11-24T02:00:00Z to 2026-11-24T04:00:30Z", -210, "on Mon 23 Nov 2026, 22:30 to Tue 24 Nov 2026, 00:30:30 (your time, UTC−3:30)"],
  ["a single time", "Remind at 2026-01-01T00:00:00.000Z?", 330, "Remind at Thu 1 Jan 2026, 05:30 (your time, UTC+5:30)?"],
  ["an invalid time", "from 2026-13-45T99:00:00Z to 9", 0, "from 2026-13-45T99:00:00Z to 9"],
  ["a day without a time", "On 2026-11-24.", 60, "On 2026-11-24."],
])("%s", (_, written, offset, read) => {
  assert.equal(readableTimes(written, () => offset), read);
});

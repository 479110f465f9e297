import { useEffect, useRef, useState } from "preact/hooks";
import type { Console } from "../control/console.js";
import type { Line } from "../model/lines.js";
import type { ReadOut } from "../model/settings.js";
import { isOn } from "../model/voice.js";
import * as words from "../words.js";

/** So many lines stand here at most: whoever reads on finds the rest in the conversation. */
const KEPT = 6;

/**
 * What screen readers are told. The conversation itself is not a live region: each word of
 * a growing text would be read again. Lines are told here when they are whole; the voice
 * agent's words can be heard, and read out they would talk over it, so they are left out
 * unless the user wants them.
 */
export function Announcer({ console }: { console: Console }) {
  const told = useTold(console.lines.value, console.settings.value.readOut);
  return (
    <div class="unseen">
      <div role="log" aria-live="polite" aria-relevant="additions" aria-label={words.READ_OUT}>
        {told.map(({ key, text }) => (
          <p key={key}>{text}</p>
        ))}
      </div>
      <p role="status">
        {situation(console)}
      </p>
      <p role="alert">
        {question(console)}
      </p>
      <p role="alert">
        {trouble(console)}
      </p>
    </div>
  );
}

interface Told {
  key: string;
  text: string;
}

function useTold(lines: readonly Line[], readOut: ReadOut): readonly Told[] {
  const done = useRef<ReadonlySet<string>>(new Set());
  const [told, setTold] = useState<readonly Told[]>([]);
  useEffect(() => {
    const whole = lines.filter((line) => isWhole(line)).map((line) => ({ key: `${line.key} ${line.kind === "handoff" ? line.state : ""}`, line }));
    const fresh = whole
      .filter(({ key, line }) => !done.current.has(key) && isTold(line, readOut))
      .map(({ key, line }) => ({ key, text: words.aloud(line) }))
      .filter(({ text }) => text !== "");
    done.current = new Set(whole.map(({ key }) => key));
    if (fresh.length > 0) {
      setTold((before) => [...before, ...fresh].slice(-KEPT));
    }
  }, [lines, readOut]);
  return told;
}

function isWhole(line: Line): boolean {
  switch (line.kind) {
    case "utterance":
      return line.state === "final";
    case "tool":
      return line.state !== "running";
    default:
      return true;
  }
}

/** Whether a line is read out: not what the user has just typed, nor what was said before a reload. */
function isTold(line: Line, readOut: ReadOut): boolean {
  if (line.restored === true || line.key.startsWith("recalled")) {
    return false;
  }
  if (line.kind !== "utterance") {
    return true;
  }
  if (line.role === "user") {
    return !line.typed;
  }
  return line.side === "text" || readOut === "all";
}

/** What has changed in the situation: the states of every turn would talk over the agent, and into the microphone. */
function situation(console: Console): string {
  const { phase, microphone, reason, notice } = console.voice.value;
  switch (phase) {
    case "open":
      if (microphone === "muted") {
        return `${words.ACTIVITY.muted.title}. ${words.ACTIVITY.muted.advice}`;
      }
      return isOn(microphone) ? words.CONNECTED.live : words.CONNECTED.off;
    case "reconnecting":
      return words.ACTIVITY.reconnecting.title;
    case "ended":
      return notice === null ? `${words.ACTIVITY.ended.title}. ${words.endedAdvice(reason)}` : "";
    default:
      return "";
  }
}

/** The newest question that waits. */
function question(console: Console): string {
  const newest = console.questions.value.findLast(({ approved }) => approved === null);
  return newest === undefined ? "" : words.askedAloud(newest);
}

function trouble(console: Console): string {
  const notice = console.voice.value.notice ?? console.text.value.notice;
  return notice === null ? "" : `${notice.title} ${notice.advice}`;
}

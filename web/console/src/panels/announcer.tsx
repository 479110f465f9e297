import { useEffect, useRef, useState } from "preact/hooks";
import type { Console } from "../control/console.js";
import type { Line } from "../model/lines.js";
import type { ReadOut } from "../model/settings.js";
import { isOn } from "../model/voice.js";
import * as words from "../words.js";

/** The most announcements kept; the conversation has all lines. */
const KEPT = 6;

/**
 * Announcements for screen readers. The conversation is not a live region, because each new word would repeat
 * the text. Complete lines are announced here. The voice agent's words are heard anyway, so they are
 * announced only if the user chooses so.
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

/** Whether a line is announced: not the user's own text, and nothing from before a reload. */
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

/**
 * Announces changes of the call, but not every state of a turn: that would talk over the agent and into the
 * microphone.
 */
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

/** The newest open question. */
function question(console: Console): string {
  const newest = console.questions.value.findLast(({ approved }) => approved === null);
  return newest === undefined ? "" : words.askedAloud(newest);
}

function trouble(console: Console): string {
  const notice = console.voice.value.notice ?? console.text.value.notice;
  return notice === null ? "" : `${notice.title} ${notice.advice}`;
}

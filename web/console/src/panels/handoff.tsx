import type { Console } from "../control/console.js";
import type { Handoff } from "../model/lines.js";
import { running } from "../model/voice.js";
import { useNow } from "../ui/now.js";
import { Microphone, Text } from "../ui/icons.js";
import * as words from "../words.js";
import "./handoff.css";

/** A handoff between the two lanes, or an invitation to one. */
export function HandoffCard({ line, console }: { line: Handoff; console: Console }) {
  const offered = line.to === "voice" && line.state === "offered";
  const length = words.callLength(line);
  return (
    <div class="crossing" data-state={line.state}>
      <div class="card">
        <span class="from">{line.to === "voice" ? <Text /> : <Microphone />}</span>
        <div class="card-words">
          <p class="card-title">
            {words.handoffTitle(line)}
            {length !== "" && <span class="faint"> · {length}</span>}
          </p>
          {line.request !== "" && (
            <p class="card-request">
              <span class="faint">{words.ANSWERED_FIRST}: </span>“{line.request}”
            </p>
          )}
          {line.state === "over" && <p class="faint">{words.INVITATION_OVER}</p>}
          {line.state === "failed" && <p class="faint">{line.to === "voice" ? words.NOT_HANDED_OVER : words.CALL_LOST}</p>}
          {line.summary !== "" && (
            <details>
              <summary>{words.HANDED_BACK}</summary>
              <p>{line.summary}</p>
            </details>
          )}
        </div>
        {offered ? <Accept line={line} console={console} /> : <Other line={line} console={console} />}
      </div>
    </div>
  );
}

/** The other side. For a question that was not handed over, a button that asks it anyway. */
function Other({ line, console }: { line: Handoff; console: Console }) {
  if (line.to === "voice" && line.state === "failed" && line.request !== "") {
    return (
      <div class="accept">
        <button type="button" disabled={running(console.voice.value)} onClick={() => console.ask(line.request)}>
          <Microphone />
          {words.ASK_BY_VOICE}
        </button>
      </div>
    );
  }
  return <span class="to">{line.to === "voice" ? <Microphone /> : <Text />}</span>;
}

/** The button that accepts an invitation, with the time left. */
function Accept({ line, console }: { line: Handoff; console: Console }) {
  const now = useNow(500, line.expires !== null);
  const over = line.expires !== null && now >= line.expires;
  return (
    <div class="accept">
      <button type="button" class="primary" disabled={over} onClick={() => console.accept(line.key)}>
        <Microphone />
        {words.TALK}
      </button>
      <span class="left faint">{line.expires === null ? "" : words.countdown(line.expires, now, words.TIME_IS_UP)}</span>
    </div>
  );
}

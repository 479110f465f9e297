import type { Console } from "../control/console.js";
import type { Side } from "../model/feed.js";
import { useFollow } from "../ui/follow.js";
import { Down, Mark, Microphone } from "../ui/icons.js";
import { useNewest } from "../ui/newest.js";
import * as words from "../words.js";
import { Dots, LineView } from "./lines.js";
import "./conversation.css";

/** Lines shown until the user asks for more. */
const SHOWN_LINES = 30;

/** Both lanes on one time axis. */
export function ConversationView({ console }: { console: Console }) {
  const lines = console.lines.value;
  const { phase, writing } = console.text.value;
  const fresh = untouched(console);
  const { ref, atEnd, toEnd } = useFollow<HTMLDivElement>(!fresh);
  const { shown, hidden, earlier } = useNewest(lines, SHOWN_LINES, !atEnd);
  const more = (): void => {
    earlier();
    ref.current?.focus(); // the button may disappear and take the focus with it
  };
  return (
    <div class="talk">
      <LaneHead console={console} side="text" />
      <LaneHead console={console} side="voice" />
      <div ref={ref} id="log" class="log" role="group" aria-label={words.LOG} tabIndex={0}>
        {fresh ? (
          <Empty console={console} taken={() => ref.current?.focus()} />
        ) : (
          <ol class="lines">
            {hidden > 0 && (
              <li key="earlier" class="line" data-side="both">
                <button type="button" class="earlier small" onClick={more}>
                  {words.earlierLines(hidden)}
                </button>
              </li>
            )}
            {shown.map((line) => (
              <LineView key={line.key} line={line} console={console} />
            ))}
            {phase === "answering" && !writing && (
              <li key="waiting" class="line" data-side="text">
                <Dots label={words.TEXT_ACTIVITY.answering} />
              </li>
            )}
          </ol>
        )}
      </div>
      {!atEnd && (
        <button type="button" class="to-end" onClick={toEnd}>
          <Down />
          {words.NEWEST}
        </button>
      )}
    </div>
  );
}

/** Reports whether the conversation is empty and no input has begun. */
export function untouched(console: Console): boolean {
  return console.lines.value.length === 0 && console.voice.value.phase === "none";
}

function LaneHead({ console, side }: { console: Console; side: Side }) {
  const status = side === "text" ? textStatus(console) : voiceStatus(console);
  return (
    <header class="lane-head" data-side={side}>
      <h2>{words.LANES[side]}</h2>
      <p class="faint" title={status}>
        {status}
      </p>
    </header>
  );
}

function textStatus(console: Console): string {
  const { phase, writing } = console.text.value;
  return phase === "answering" && writing ? words.TEXT_ACTIVITY.writing : words.TEXT_ACTIVITY[phase];
}

/** The agent of the running or last call. */
function voiceStatus(console: Console): string {
  const { session } = console.voice.value;
  return session === null ? "" : [session.provider, session.model, session.voice].filter((part) => part !== "").join(" · ");
}

/**
 * Shown in an empty conversation: an introduction and the first step. `taken` is called when an example was
 * pressed.
 */
function Empty({ console, taken }: { console: Console; taken: () => void }) {
  const simulated = console.offer.value?.simulator === true;
  return (
    <div class="empty">
      <span class="empty-mark">
        <Mark />
      </span>
      <p class="empty-title">{words.EMPTY.title}</p>
      <p class="empty-text">{words.EMPTY.text}</p>
      <button id="start" type="button" class="primary big" onClick={() => console.talk()}>
        <Microphone />
        {words.EMPTY.start}
      </button>
      <p class="faint">{words.EMPTY.hint}</p>
      {simulated && (
        <div class="examples">
          <p class="faint">{words.EMPTY.simulated}</p>
          {words.EXAMPLES.map((example) => (
            <button
              key={example}
              type="button"
              onClick={() => {
                console.write(example);
                // The button disappears and would take the focus with it.
                taken();
              }}
            >
              {example}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

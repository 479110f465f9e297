// The lines of a conversation, each in its lane.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Console } from "../control/console.js";
import type { Line, Outcome, Picture, Remark, ToolLine, Trouble, Utterance } from "../model/lines.js";
import { memo } from "../ui/memo.js";
import { Alert, Check, Cross, Microphone, Tool } from "../ui/icons.js";
import * as words from "../words.js";
import { HandoffCard } from "./handoff.js";
import { Rich } from "./rich.js";

/** One line, rendered again only when it changes. */
export const LineView = memo(({ line, console }: { line: Line; console: Console }) => {
  const crossing = line.kind === "handoff";
  return (
    <li class={`line ${line.kind}`} data-side={crossing ? "both" : line.side} data-to={crossing ? line.to : undefined}>
      {contentOf(line, console)}
    </li>
  );
});

function contentOf(line: Line, console: Console): JSX.Element {
  switch (line.kind) {
    case "utterance":
      return <Said line={line} />;
    case "tool":
      return <Called line={line} />;
    case "picture":
      return <Drawn line={line} />;
    case "outcome":
      return <Decided line={line} />;
    case "handoff":
      return <HandoffCard line={line} console={console} />;
    case "trouble":
      return <Failed line={line} console={console} />;
    case "remark":
      return <Remarked line={line} />;
  }
}

function Said({ line }: { line: Utterance }) {
  const { role, state, cut, side } = line;
  return (
    <div class={`said ${role}`} data-state={state}>
      {role === "assistant" && side === "text" ? <Written line={line} /> : <Spoken line={line} />}
      {cut && <p class="note">{unheardFrom(line) < line.text.length ? words.CUT_UNHEARD : words.CUT}</p>}
    </div>
  );
}

/** The text agent's answer, with lists and links. */
function Written({ line }: { line: Utterance }) {
  return (
    <div class="what rich" data-more={line.state === "open" && !line.cut}>
      <span class="unseen">{words.speaker(line)}: </span>
      <Rich text={line.text} />
    </div>
  );
}

function Spoken({ line }: { line: Utterance }) {
  const { role, text, state, typed } = line;
  const from = unheardFrom(line);
  return (
    <p class="what" data-more={state === "open" && !line.cut}>
      <span class="unseen">{words.speaker(line)}: </span>
      {role === "user" && !typed && <Microphone />}
      {state === "hearing" ? <Dots label={words.HEARING} /> : text.slice(0, from)}
      {from < text.length && <span class="unheard">{text.slice(from)}</span>}
    </p>
  );
}

/** Returns where the unheard words begin; the text's length if all were heard. */
function unheardFrom({ text, heard }: Utterance): number {
  return heard === undefined ? text.length : heard + (/^\s*/.exec(text.slice(heard))?.[0].length ?? 0);
}

/** A progress indicator. */
export function Dots({ label }: { label: string }) {
  return (
    <span class="dots">
      <span class="unseen">{label}</span>
      <span aria-hidden="true" />
      <span aria-hidden="true" />
      <span aria-hidden="true" />
    </span>
  );
}

function Called({ line }: { line: ToolLine }) {
  // A tool that asks for approval has not failed.
  const state = line.error?.type === "CONFIRMATION_REQUIRED" ? "asks" : line.state;
  return (
    // The error message is written for the agent and is too long for the line, so it is the tooltip.
    <p class="happened" data-state={state} title={line.error?.message}>
      <Tool />
      <span>
        <span class="unseen">{words.TOOL} </span>
        <code>{line.tool}</code> <span class="faint">{words.toolStatus(line)}</span>
      </span>
    </p>
  );
}

function Drawn({ line }: { line: Picture }) {
  const [gone, setGone] = useState(false);
  const size = line.width > 0 && line.height > 0 ? { width: line.width, height: line.height } : {};
  return (
    <figure>
      {gone ? (
        <p class="gone">{words.PICTURE_GONE}</p>
      ) : (
        <a href={line.url} target="_blank" rel="noreferrer" aria-label={`${words.OPEN_PICTURE}: ${line.prompt}`}>
          <img src={line.url} alt={line.prompt} {...size} decoding="async" onError={() => setGone(true)} />
        </a>
      )}
      <figcaption>{line.prompt}</figcaption>
    </figure>
  );
}

function Decided({ line }: { line: Outcome }) {
  return (
    <p class="happened">
      {line.outcome === "approved" ? <Check /> : <Cross />}
      <span>
        {line.preview} <span class="faint">{words.outcomeOf(line)}</span>
      </span>
    </p>
  );
}

function Failed({ line, console }: { line: Trouble; console: Console }) {
  return (
    <div class="failure">
      <Alert />
      <p>
        <strong>{line.title}</strong> {line.advice}
      </p>
      {line.again !== "" && (
        <button type="button" class="small" onClick={() => console.write(line.again)}>
          {words.SEND_AGAIN}
        </button>
      )}
    </div>
  );
}

function Remarked({ line }: { line: Remark }) {
  return <p class="aside">{line.text}</p>;
}

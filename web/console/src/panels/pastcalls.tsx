// The past calls: a list, and the stored data of one.
import { useEffect, useRef, useState } from "preact/hooks";
import type { CallsControl, Transcript } from "../control/calls.js";
import type { Console } from "../control/console.js";
import type { Instruments } from "../instruments.js";
import { continued, joined, type PastCall, type PastCalls, type PastTurn } from "../model/past.js";
import type { RunningCalls } from "../model/running.js";
import { clock, dollars } from "../words.js";
import { Fact } from "./bits.js";
import { Written } from "./callparts.js";
import { CALL_FACT, CALLS, called, mode, PAST_TURN, toolsOf, turns } from "./words-calls.js";
import { duration } from "./words-instruments.js";

/** The list is reloaded at this interval in ms, and when a call begins or ends. */
const AGAIN_MS = 5_000;

export interface Past {
  /** Undefined while loading; "none" if the gateway keeps no list, null without an answer. */
  readonly calls: PastCalls | "none" | null | undefined;
  /** The conversations of running calls, which are not past. */
  readonly running: ReadonlySet<string>;
  /** Loads the next page; undefined on the last one. */
  readonly more: (() => void) | undefined;
}

/** Keeps the past calls up to date while visible. */
export function usePast(control: CallsControl, running: RunningCalls | null | undefined): Past {
  const [calls, setCalls] = useState<PastCalls | "none" | null | undefined>(undefined);
  const asking = useRef(false);
  const here = (running?.calls ?? []).map(({ conversation }) => conversation).filter((id) => id !== "");
  useEffect(() => {
    let on = true;
    const look = async (): Promise<void> => {
      const fresh = document.hidden ? null : await control.past();
      if (on && !(fresh === null && document.hidden)) {
        setCalls((known) => merged(fresh, known));
      }
    };
    void look();
    const timer = setInterval(() => void look(), AGAIN_MS);
    return () => {
      on = false;
      clearInterval(timer);
    };
  }, [here.join(" ")]);

  const next = typeof calls === "object" && calls !== null ? calls.next : "";
  const more = async (): Promise<void> => {
    if (asking.current) {
      return;
    }
    asking.current = true;
    const page = await control.past(next);
    asking.current = false;
    if (typeof page === "object" && page !== null) {
      setCalls((known) => (typeof known === "object" && known !== null && known.next === next ? continued(known, page) : known));
    }
  };
  return { calls, running: new Set(here), more: next === "" ? undefined : () => void more() };
}

/** Keeps the known calls while the gateway does not answer. */
function merged(fresh: PastCalls | "none" | null, known: PastCalls | "none" | null | undefined): PastCalls | "none" | null {
  const before = typeof known === "object" ? known : null;
  return fresh === "none" ? fresh : fresh === null ? before : joined(fresh, before);
}

/** Renders nothing if the gateway keeps no list. */
export function PastList({ past, onOpen }: { past: Past; onOpen: (call: PastCall) => void }) {
  if (past.calls === "none") {
    return null;
  }
  const calls = past.calls?.calls.filter(({ conversation }) => !past.running.has(conversation));
  const said = past.calls === undefined ? CALLS.loading : past.calls === null ? CALLS.pastUntold : calls?.length === 0 ? CALLS.noPast : "";
  return (
    <section aria-label={CALLS.past}>
      <h3>{CALLS.past}</h3>
      <p role="status">{said}</p>
      <ul>
        {calls?.map((call) => (
          <li key={call.conversation}>
            <button type="button" class="calls-one" onClick={() => onOpen(call)}>
              <strong>{call.title === "" ? CALLS.untitled : call.title}</strong>
              <span class="calls-facts">{facts(call).join(" · ")}</span>
            </button>
          </li>
        ))}
      </ul>
      {past.more !== undefined && (
        <button type="button" onClick={past.more}>
          {CALLS.more}
        </button>
      )}
      {past.calls?.incomplete === true && <p class="faint">{CALLS.older}</p>}
    </section>
  );
}

function facts(call: PastCall): string[] {
  const known = [
    call.user === "" ? CALLS.noUser : call.user,
    call.lastAt === 0 ? "" : clock(call.lastAt),
    mode(call),
    call.agent,
    turns(call.turns),
    call.calls === 0 ? "" : called(call.calls),
    call.costMicros === undefined ? "" : dollars(call.costMicros),
  ];
  return known.filter((fact) => fact !== "");
}

export function OnePast({ console, instruments, control, call, onBack }: { console: Console; instruments: Instruments; control: CallsControl; call: PastCall; onBack: () => void }) {
  const [found, setFound] = useState<Transcript | "gone" | null | undefined>(undefined);
  useEffect(() => {
    let on = true;
    void control.transcript(call.conversation).then((answer) => on && setFound(answer));
    return () => {
      on = false;
    };
  }, []);
  const transcript = typeof found === "object" ? found : null;
  return (
    <div class="calls-one-page">
      <p>
        <button type="button" class="link" onClick={onBack}>
          {CALLS.back}
        </button>
      </p>
      <h3>{call.title === "" ? CALLS.untitled : call.title}</h3>
      <dl class="calls-about">
        <Fact name={CALL_FACT.user}>{call.user === "" ? CALLS.noUser : call.user}</Fact>
        <Fact name={CALL_FACT.agent}>{call.agent}</Fact>
        <Fact name={CALL_FACT.mode}>{mode(call)}</Fact>
        <Fact name={CALL_FACT.started}>{call.begunAt === 0 ? "" : clock(call.begunAt)}</Fact>
        <Fact name={CALL_FACT.last}>{call.lastAt === 0 ? "" : clock(call.lastAt)}</Fact>
        <Fact name={CALL_FACT.turns}>{call.turns}</Fact>
        <Fact name={CALL_FACT.tools}>{call.calls === 0 ? "" : toolsOf(call.tools)}</Fact>
        <Fact name={CALL_FACT.total}>{call.costMicros === undefined ? "" : dollars(call.costMicros)}</Fact>
        <Fact name={CALL_FACT.conversation}>
          <code>{call.conversation}</code>
        </Fact>
      </dl>
      <h4>{CALLS.transcript}</h4>
      {transcript === null || transcript.lines.length === 0 ? (
        <p class="faint" role="status">
          {found === undefined ? CALLS.loading : found === "gone" ? CALLS.gone : found === null ? CALLS.transcriptUntold : CALLS.nothingWasSaid}
        </p>
      ) : (
        <Written {...{ console, instruments, transcript }} lines={transcript.lines} name={call.conversation} />
      )}
      {transcript !== null && transcript.turns.length > 0 && <Turns turns={transcript.turns} />}
    </div>
  );
}

/** The stored data of each turn except its words. */
function Turns({ turns: kept }: { turns: readonly PastTurn[] }) {
  return (
    <div class="calls-turns" role="group" aria-label={CALLS.eachTurn} tabIndex={0}>
      <table>
        <caption>{CALLS.eachTurn}</caption>
        <thead>
          <tr>
            <th scope="col">{PAST_TURN.turn}</th>
            <th scope="col">{PAST_TURN.response}</th>
            <th scope="col">{PAST_TURN.cost}</th>
            <th scope="col">{PAST_TURN.tools}</th>
          </tr>
        </thead>
        <tbody>
          {kept.map(({ turn, responseMs, costMicros, tools }) => (
            <tr key={turn}>
              <th scope="row">{turn}</th>
              <td>{responseMs === undefined ? "" : duration(responseMs)}</td>
              <td>{costMicros === undefined ? "" : dollars(costMicros)}</td>
              <td>{tools.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

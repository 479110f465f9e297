// The calls page over the console: running calls, past calls, and one call.
import { useState } from "preact/hooks";
import { CallsControl, type Transcript } from "../control/calls.js";
import type { Console } from "../control/console.js";
import type { Instruments } from "../instruments.js";
import type { Line } from "../model/lines.js";
import type { RunningCall, RunningCalls } from "../model/running.js";
import type { PastCall } from "../model/past.js";
import { useNow } from "../ui/now.js";
import { Sheet } from "../ui/sheet.js";
import { clock, dollars, span } from "../words.js";
import { Fact } from "./bits.js";
import { useLooking, Written } from "./callparts.js";
import { PromptInForce } from "./prompt.js";
import { OnePast, PastList, usePast } from "./pastcalls.js";
import { CALL_FACT, CALL_STATE, CALLS, turns } from "./words-calls.js";
import "./calls.css";

/** Lists the running calls and shows one. */
export function CallsPage({ console, instruments, open, onClose }: { console: Console; instruments: Instruments; open: boolean; onClose: () => void }) {
  return (
    <Sheet id="calls" title={CALLS.title} place="wide" open={open} onClose={onClose}>
      {console.access.state.value === "open" ? <Running {...{ console, instruments }} /> : <p class="calls-note">{CALLS.shut}</p>}
    </Sheet>
  );
}

function Running({ console, instruments }: { console: Console; instruments: Instruments }) {
  const [control] = useState(() => new CallsControl(console.access.request));
  const [running, setRunning] = useState<RunningCalls | null | undefined>(undefined);
  const [chosen, setChosen] = useState<RunningCall | null>(null);
  const [chosenPast, setChosenPast] = useState<PastCall | null>(null);
  const past = usePast(control, running);
  useLooking(async (still) => {
    const found = await control.list();
    if (still()) {
      setRunning(found);
      // After a call has ended, its last known state stays.
      setChosen((before) => found?.calls.find(({ id }) => id === before?.id) ?? before);
    }
  });
  const own = console.voice.value.session?.id;
  if (chosen !== null) {
    const over = running != null && !running.calls.some(({ id }) => id === chosen.id);
    return <OneCall key={chosen.id} {...{ console, instruments, control, over }} call={chosen} own={chosen.id === own} onBack={() => setChosen(null)} />;
  }
  if (chosenPast !== null) {
    return <OnePast key={chosenPast.conversation} {...{ console, instruments, control }} call={chosenPast} onBack={() => setChosenPast(null)} />;
  }
  return (
    <div class="calls-list">
      <List running={running} own={own} onOpen={setChosen} />
      <PastList past={past} onOpen={setChosenPast} />
    </div>
  );
}

function List({ running, own, onOpen }: { running: RunningCalls | null | undefined; own: string | undefined; onOpen: (call: RunningCall) => void }) {
  const now = useNow(1000);
  const said = running === undefined ? CALLS.loading : running === null ? CALLS.untold : running.calls.length === 0 ? CALLS.none : running.incomplete ? CALLS.incomplete : "";
  return (
    <section aria-label={CALLS.running}>
      <h3>{CALLS.running}</h3>
      <p role="status">{said}</p>
      <ul>
        {running?.calls.map((call) => (
          <li key={call.id}>
            <button type="button" class="calls-one" onClick={() => onOpen(call)}>
              <strong>{call.user === "" ? CALLS.noUser : call.user}</strong>
              {call.id === own && <span class="calls-own">{CALLS.here}</span>}
              <span data-state={call.state}>{CALL_STATE[call.state]}</span>
              <span class="calls-facts">{[call.agent, call.model, call.startedAt === 0 ? "" : span(now - call.startedAt), call.turns === undefined ? "" : turns(call.turns), call.costMicros === undefined ? "" : dollars(call.costMicros)].filter((part) => part !== "").join(" · ")}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface OneCallProps {
  console: Console;
  instruments: Instruments;
  control: CallsControl;
  call: RunningCall;
  /** The call belongs to this page. */
  own: boolean;
  over: boolean;
  onBack: () => void;
}

function OneCall({ console, instruments, control, call, own, over, onBack }: OneCallProps) {
  const [transcript, setTranscript] = useState<Transcript | null>(null);
  useLooking(async (still) => {
    const found = call.conversation === "" ? null : await control.transcript(call.conversation);
    if (found !== null && found !== "gone" && still()) {
      setTranscript((before) => (before?.json === found.json ? before : found));
    }
  });
  const lines = linesOf(transcript, over);
  return (
    <div class="calls-one-page">
      <p>
        <button type="button" class="link" onClick={onBack}>
          {CALLS.back}
        </button>
      </p>
      <h3>
        {call.user === "" ? CALLS.noUser : call.user}
        <span data-state={over ? "over" : call.state} role="status">
          {over ? CALLS.over : CALL_STATE[call.state]}
        </span>
      </h3>
      <dl class="calls-about">
        <Fact name={CALL_FACT.agent}>{call.agent}</Fact>
        <Fact name={CALL_FACT.model}>{[call.provider, call.model].filter((part) => part !== "").join(", ")}</Fact>
        <Fact name={CALL_FACT.started}>{call.startedAt === 0 ? "" : clock(call.startedAt)}</Fact>
        <Fact name={CALL_FACT.turns}>{call.turns}</Fact>
        <Fact name={CALL_FACT.cost}>{call.costMicros === undefined ? "" : dollars(call.costMicros)}</Fact>
        <Fact name={CALL_FACT.node}>{call.node}</Fact>
        <Fact name={CALL_FACT.id}>
          <code>{call.id}</code>
        </Fact>
      </dl>
      {!over && !own && <HangUp control={control} call={call.id} />}
      {!over && <PromptInForce control={control} call={call} />}
      <h4>{CALLS.transcript}</h4>
      {transcript === null || lines.length === 0 ? (
        <p class="faint">{call.conversation === "" ? CALLS.notKept : CALLS.nothingSaid}</p>
      ) : (
        <Written {...{ console, instruments, lines, transcript }} name={call.id} />
      )}
    </div>
  );
}

/** A running call has not returned to text. */
function linesOf(transcript: Transcript | null, over: boolean): readonly Line[] {
  const lines = transcript?.lines ?? [];
  return !over && lines.at(-1)?.kind === "handoff" ? lines.slice(0, -1) : lines;
}

/** Ends another user's call after a confirmation. */
function HangUp({ control, call }: { control: CallsControl; call: string }) {
  const [sure, setSure] = useState(false);
  const [said, setSaid] = useState("");
  const end = async (): Promise<void> => {
    setSure(false);
    setSaid((await control.end(call)) ?? CALLS.ending);
  };
  return (
    <p class="calls-save">
      {sure ? (
        <span role="group" aria-label={CALLS.hangUpSure} class="calls-save">
          {CALLS.hangUpSure}
          <button type="button" onClick={() => void end()}>
            {CALLS.hangUpYes}
          </button>
          <button type="button" onClick={() => setSure(false)}>
            {CALLS.hangUpNo}
          </button>
        </span>
      ) : (
        <button type="button" onClick={() => setSure(true)}>
          {CALLS.hangUp}
        </button>
      )}
      <span role="status">{said}</span>
    </p>
  );
}

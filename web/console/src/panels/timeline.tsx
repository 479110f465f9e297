// The tool calls of each turn over time.
import { useId } from "preact/hooks";
import type { Instruments } from "../instruments.js";
import type { Account, Budget } from "../model/budget.js";
import { axisOf, segmentsOf, type Call, type TurnCalls } from "../model/calls.js";
import { Chips, Empty, useNow } from "./bits.js";
import { memo } from "../ui/memo.js";
import { useNewest } from "../ui/newest.js";
import { Json } from "./json.js";
import type { View } from "./view.js";
import { asksUser, BUDGET, BUDGET_LABEL, chipsOf, duration, outcomeOf, SEGMENT, SIDE, storyOf, TOOLS, tookOf, TURN } from "./words-instruments.js";
import "./timeline.css";

/** Turns shown until the user asks for more. */
const SHOWN_TURNS = 10;

export function Timeline({ instruments, view }: { instruments: Instruments; view: View }) {
  void instruments.changed.value;
  const { turns } = instruments.tools;
  const ticked = useNow(turns.some(isOpen));
  const { shown, hidden, earlier } = useNewest(turns, SHOWN_TURNS, false);
  if (turns.length === 0) {
    return <Empty>{TOOLS.empty}</Empty>;
  }
  // A call that began since the last tick is not in the future.
  const newest = Math.max(...turns.at(-1)!.calls.map(({ startedAt, asked }) => asked?.at ?? startedAt));
  const now = Math.max(ticked, newest);
  return (
    <div class="i-timeline" tabIndex={-1}>
      <Legend />
      {shown.toReversed().map((turn) => (
        <Turn key={turn.key} turn={turn} now={isOpen(turn) ? now : 0} view={view} instruments={instruments} />
      ))}
      {hidden > 0 && (
        <button
          type="button"
          class="small i-earlier"
          onClick={({ currentTarget }) => {
            earlier();
            currentTarget.parentElement?.focus(); // the button may disappear and take the focus with it
          }}
        >
          {TOOLS.earlier(hidden)}
        </button>
      )}
    </div>
  );
}

function Legend() {
  return (
    <ul class="i-legend" aria-hidden="true">
      {(["queued", "run", "shared", "asked"] as const).map((kind) => (
        <li key={kind}>
          <span class={`i-key i-segment-${kind}`} />
          {SEGMENT[kind]}
        </li>
      ))}
    </ul>
  );
}

/** Whether a call of the turn is still running. */
function isOpen({ calls }: TurnCalls): boolean {
  return calls.some((call) => call.status === "running" || (call.asked !== undefined && call.asked.endedAt === undefined));
}

interface TurnProps {
  turn: TurnCalls;
  now: number;
  view: View;
  instruments: Instruments;
}

const Turn = memo(({ turn, now, view, instruments }: TurnProps) => {
  const heading = useId();
  const mask = (value: unknown): unknown => instruments.secrets.mask(value);
  const axis = axisOf(turn.calls, now);
  return (
    <section class="i-turn" aria-labelledby={heading}>
      <header class="i-turn-head">
        <h3 id={heading}>
          {TURN.heading(turn.turn)}
          <span class={`i-side i-side-${turn.side}`}>{SIDE[turn.side]}</span>
        </h3>
        {turn.budget !== undefined && <BudgetView budget={turn.budget} />}
      </header>
      <ol class="i-calls">
        {turn.calls.map((call) => (
          <CallRow key={call.id} call={call} axis={axis} now={now} view={view} name={`${turn.key} ${call.id}`} mask={mask} />
        ))}
      </ol>
      <p class="i-axis" aria-hidden="true">
        <span>0</span>
        <span>{duration(axis.ms)}</span>
      </p>
    </section>
  );
});

/** The used part of a turn's budget. */
export function BudgetView({ budget }: { budget: Budget }) {
  return (
    <ul class="i-budget" aria-label={BUDGET_LABEL}>
      {(["retrieval", "total", "tool_time_ms"] as const).map((kind) => {
        const account = budget[kind];
        return account === undefined ? null : <AccountView key={kind} kind={kind} account={account} />;
      })}
    </ul>
  );
}

function AccountView({ kind, account: { used, limit } }: { kind: keyof Budget; account: Account }) {
  const over = kind === "tool_time_ms" ? used > limit : used >= limit;
  return (
    <li class={over ? "i-account i-account-full" : "i-account"}>
      {kind !== "tool_time_ms" && limit <= 10 && (
        <span class="i-pips" aria-hidden="true">
          {Array.from({ length: limit }, (_, i) => (
            <span key={i} class={i < used ? "i-pip i-pip-used" : "i-pip"} />
          ))}
        </span>
      )}
      {used} of {limit} {BUDGET[kind]}
    </li>
  );
}

interface CallProps {
  call: Call;
  axis: { from: number; ms: number };
  now: number;
  view: View;
  name: string;
  mask: (value: unknown) => unknown;
}

function CallRow({ call, axis, now, view, name, mask }: CallProps) {
  const details = useId();
  const open = view.calls.value.has(name);
  return (
    <li class="i-call">
      <button type="button" class="i-call-row" aria-expanded={open} aria-controls={details} onClick={() => view.toggleCall(name)}>
        <span class="i-call-name">
          {call.tool} <span class="i-call-category">{call.category}</span>
        </span>
        <span class="i-call-chips">
          <Chips chips={chipsOf(call)} />
        </span>
        <Bar call={call} axis={axis} now={now} />
        <span class={`i-call-outcome i-outcome-${asksUser(call) ? (call.asked?.outcome ?? "asked") : call.status}`}>{outcomeOf(call)}</span>
        <span class="i-call-took">{tookOf(call, now)}</span>
      </button>
      <div id={details} class="i-call-details" hidden={!open}>
        {open && <Details call={call} now={now} mask={mask} />}
      </div>
    </li>
  );
}

function Bar({ call, axis, now }: { call: Call; axis: { from: number; ms: number }; now: number }) {
  const place = (at: number): number => Math.min(100, Math.max(0, ((at - axis.from) / axis.ms) * 100));
  const segments = segmentsOf(call, now);
  return (
    <span class="i-bar" aria-hidden="true">
      {segments.length === 0 && <span class="i-segment i-segment-none" style={{ left: `${place(call.startedAt)}%` }} />}
      {segments.map(({ kind, from, to }) => (
        <span
          key={kind}
          class={`i-segment i-segment-${kind} ${kind === "run" ? `i-segment-${call.status}` : ""}`}
          style={{ left: `${place(from)}%`, width: `${place(to) - place(from)}%` }}
        />
      ))}
    </span>
  );
}

function Details({ call, now, mask }: { call: Call; now: number; mask: (value: unknown) => unknown }) {
  return (
    <>
      <p class="i-call-story">
        {storyOf(call, segmentsOf(call, now)).join(" ")}
        {call.record === undefined && ` ${call.status === "running" ? TOOLS.running : TOOLS.noInspect}`}
      </p>
      {call.record !== undefined && (
        <>
          <Json title={TOOLS.args} value={mask(call.args)} />
          <Json title={TOOLS.envelope} value={mask(call.envelope)} />
          <Json title={TOOLS.record} value={mask(call.record)} />
        </>
      )}
      {call.record === undefined && call.error !== undefined && <Json title={TOOLS.envelope} value={mask({ ok: false, error: call.error })} />}
    </>
  );
}

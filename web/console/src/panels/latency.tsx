// The latency of each turn, in parts.
import { useId } from "preact/hooks";
import type { Instruments } from "../instruments.js";
import { PARTS, percentiles, type Part, type Turn } from "../model/turns.js";
import { CallAudio, TurnAudio } from "./audio.js";
import { Empty } from "./bits.js";
import { Plot } from "./plot.js";
import type { View } from "./view.js";
import { duration, FIGURES, LATENCY, PART, TURN, turnRemark, used, usedByCall, waitSentence } from "./words-instruments.js";
import "./latency.css";

export function LatencyPanel({ instruments, view }: { instruments: Instruments; view: View }) {
  void instruments.changed.value;
  const { list, answered, spent, ofThisCall } = instruments.turns;
  if (list.length === 0) {
    return <Empty>{LATENCY.empty}</Empty>;
  }
  const waits = answered.map(({ totalMs }) => totalMs!);
  const longest = Math.max(1, ...waits);
  return (
    <div class="i-latency">
      {spent !== null && <p class="i-quiet">{usedByCall(ofThisCall, spent)}</p>}
      <Figures turns={answered} />
      <section aria-label={LATENCY.plot}>
        <ul class="i-legend" aria-hidden="true">
          <li>
            <span class="i-key i-key-dot" />
            {FIGURES.turn}
          </li>
          <li>
            <span class="i-key i-key-median" />
            {LATENCY.median}
          </li>
          <li>
            <span class="i-key i-key-slow" />
            {LATENCY.slow}
          </li>
        </ul>
        {waits.length < 2 ? <p class="i-plot i-plot-empty">{LATENCY.plotEmpty}</p> : <Plot waits={waits} />}
      </section>
      <section class="i-waits" aria-label={LATENCY.title}>
        <h3>{LATENCY.title}</h3>
        <Parts />
        <ol>
          {list.toReversed().map((turn) => (
            <TurnRow key={turn.key} turn={turn} longest={longest} instruments={instruments} view={view} />
          ))}
        </ol>
        <p class="i-quiet">{LATENCY.kept}</p>
        <CallAudio instruments={instruments} />
      </section>
    </div>
  );
}

/** The legend of the colours. */
function Parts() {
  return (
    <dl class="i-parts">
      {PARTS.map((part) => (
        <div key={part}>
          <dt>
            <span class={`i-key i-part-${part}`} aria-hidden="true" />
            {PART[part].name}
          </dt>
          <dd>{PART[part].means}</dd>
        </div>
      ))}
    </dl>
  );
}

function Figures({ turns }: { turns: readonly Turn[] }) {
  const rows: [string, number[]][] = [
    [FIGURES.total, turns.map(({ totalMs }) => totalMs!)],
    ...PARTS.map((part): [string, number[]] => [PART[part].name, turns.flatMap(({ parts }) => parts[part] ?? [])]),
  ];
  return (
    <table class="i-figures">
      <caption class="i-hidden-text">{FIGURES.caption}</caption>
      <thead>
        <tr>
          <th scope="col">ms</th>
          {["p50", "p90", "p95", "max", FIGURES.turns].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, waits]) => {
          const found = percentiles(waits);
          return (
            <tr key={name}>
              <th scope="row">{name}</th>
              {([found?.p50, found?.p90, found?.p95, found?.max, found?.n] as const).map((figure, i) => (
                <td key={i}>{figure === undefined ? "–" : Math.round(figure)}</td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function TurnRow({ turn, longest, instruments, view }: { turn: Turn; longest: number; instruments: Instruments; view: View }) {
  const details = useId();
  const open = view.turns.value.has(turn.key);
  return (
    <li class="i-wait">
      <button type="button" class="i-wait-row" aria-expanded={open} aria-controls={details} onClick={() => view.toggleTurn(turn.key)}>
        <span class="i-wait-turn">{TURN.heading(turn.turn)}</span>
        <Stack turn={turn} longest={longest} />
        <span class="i-wait-total">{turn.totalMs === undefined ? "–" : duration(turn.totalMs)}</span>
        <span class="i-wait-remark">{turnRemark(turn)}</span>
        {turn.totalMs !== undefined && <span class="i-hidden-text">{waitSentence(turn)}</span>}
      </button>
      <div id={details} class="i-wait-details" hidden={!open}>
        {open && <Details turn={turn} instruments={instruments} />}
      </div>
    </li>
  );
}

function Stack({ turn, longest }: { turn: Turn; longest: number }) {
  return (
    <span class="i-stack" aria-hidden="true">
      {known(turn).map(([part, ms]) => (
        <span key={part} class={`i-part i-part-${part}`} title={`${PART[part].name} ${duration(ms)}`} style={{ width: `${(ms / longest) * 100}%` }} />
      ))}
    </span>
  );
}

function Details({ turn, instruments }: { turn: Turn; instruments: Instruments }) {
  const { usage } = turn;
  return (
    <>
      {turn.totalMs !== undefined && (
        <table class="i-wait-parts">
          <caption class="i-hidden-text">{TURN.parts(turn.turn)}</caption>
          <tbody>
            {known(turn).map(([part, ms]) => (
              <tr key={part}>
                <th scope="row">
                  <span class={`i-key i-part-${part}`} aria-hidden="true" />
                  {PART[part].name}
                </th>
                <td>{duration(ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {turn.totalMs !== undefined && <p class="i-quiet">{turn.heardMs === undefined ? LATENCY.partial : LATENCY.heard(turn.heardMs)}</p>}
      {usage !== undefined && usage.input_tokens + usage.output_tokens > 0 && (
        <p class="i-quiet">
          {used(usage)}
        </p>
      )}
      <TurnAudio instruments={instruments} turn={turn} />
    </>
  );
}

function known(turn: Turn): [Part, number][] {
  return PARTS.flatMap((part): [Part, number][] => {
    const ms = turn.parts[part];
    return ms === undefined ? [] : [[part, ms]];
  });
}

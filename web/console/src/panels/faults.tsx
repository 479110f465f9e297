// Buttons that inject simulator faults, and their results.
import { useId } from "preact/hooks";
import type { Instruments } from "../instruments.js";
import type { Committed, Fault } from "../model/faults.js";
import type { View } from "./view.js";
import { FAULTS, faultEffect, faultEnd, faultResult, timeOfDay, watchFor } from "./words-instruments.js";
import "./faults.css";

const LASTING = [300, 500, 1000, 2000, 5000, 10_000, 20_000];

export function FaultsPanel({ instruments: { faults, agent, changed }, view }: { instruments: Instruments; view: View }) {
  void changed.value;
  const [last, ...before] = faults.committed.value;
  const session = agent.running ? agent.session?.session_id : undefined;
  return (
    <div class="i-faults">
      <p class="i-faults-intro">{session === undefined ? FAULTS.idle : FAULTS.intro}</p>
      <p class="i-faults-last" role="status">
        {last === undefined ? FAULTS.none : <Result committed={last} />}
      </p>
      <ul class="i-faults-list">
        {faults.list.value?.map((fault) => (
          <FaultRow
            key={fault.do}
            fault={fault}
            disabled={session === undefined}
            ms={view.lasting.value[fault.do] ?? fault.for_ms ?? 2000}
            lasts={(ms) => (view.lasting.value = { ...view.lasting.value, [fault.do]: ms })}
            press={(ms) => void faults.commit(fault, session!, ms)}
          />
        ))}
      </ul>
      {before.length > 0 && (
        <section aria-label={FAULTS.before}>
          <h3>{FAULTS.before}</h3>
          <ul class="i-faults-before">
            {before.map((committed) => (
              <li key={committed.number}>
                <Result committed={committed} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Result({ committed }: { committed: Committed }) {
  return (
    <>
      <span class="i-quiet">{timeOfDay(committed.wall).slice(0, 8)}</span> {committed.fault.label}: <span class={committed.result === "failed" ? "i-bad" : ""}>{faultResult(committed)}</span>
      {faultEnd(committed) !== "" && (
        <ol class="i-faults-effects">
          {committed.effects.map((effect, i) => (
            <li key={i}>
              <span class="i-quiet">{timeOfDay(effect.wall).slice(0, 8)}</span> {faultEffect(effect)}
            </li>
          ))}
          <li>{faultEnd(committed)}</li>
        </ol>
      )}
    </>
  );
}

interface FaultProps {
  fault: Fault;
  disabled: boolean;
  ms: number;
  lasts: (ms: number) => void;
  press: (ms: number) => void;
}

function FaultRow({ fault, disabled, ms, lasts, press }: FaultProps) {
  const watch = useId();
  const choices = LASTING.includes(ms) ? LASTING : [...LASTING, ms].sort((a, b) => a - b);
  return (
    <li>
      <button type="button" class="small" aria-describedby={watch} disabled={disabled} onClick={() => press(ms)}>
        {fault.label}
      </button>
      {fault.for && (
        <select class="i-input" aria-label={`${FAULTS.lasting}: ${fault.label}`} value={ms} onChange={(event) => lasts(Number(event.currentTarget.value))}>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice / 1000} s
            </option>
          ))}
        </select>
      )}
      <p id={watch}>{watchFor(fault.do)}</p>
    </li>
  );
}

// The instruments, one per tab.
import "./instruments.css";
import { useEffect, useRef } from "preact/hooks";
import type { Access } from "../control/access.js";
import type { Instruments } from "../instruments.js";
import { FaultsPanel } from "./faults.js";
import { LatencyPanel } from "./latency.js";
import { LogPanel } from "./log.js";
import { StatePanel, type ReadStats } from "./state.js";
import { Timeline } from "./timeline.js";
import type { Tab, View } from "./view.js";
import { ACCESS, INSTRUMENTS, TABS } from "./words-instruments.js";

interface InstrumentsProps {
  instruments: Instruments;
  /** The open tabs and filters, which outlive the panel. */
  view: View;
  /** The client library's statistics. */
  stats: ReadStats;
  /** A simulator replaces the providers and can inject faults. */
  simulator: boolean;
  /** The permission to inspect. */
  access?: Access;
}

export function InstrumentsPanel({ instruments, view, stats, simulator, access }: InstrumentsProps) {
  const { tab } = view;
  const { faults } = instruments;
  useEffect(() => {
    // Without permission the gateway would only refuse.
    if (simulator && access?.state.value !== "shut") {
      void faults.load();
    }
  }, [faults, simulator, access?.turns.value]);

  const tabs = (Object.keys(TABS) as Tab[]).filter((name) => name !== "faults" || faults.list.value !== null);
  const shown = tabs.includes(tab.value) ? tab.value : "tools";
  const strip = useRef<HTMLDivElement>(null);
  const pressed = (event: KeyboardEvent): void => {
    const at = tabs.indexOf(shown);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      tab.value = tabs.at(to % tabs.length)!;
      strip.current!.querySelector<HTMLElement>(`[data-tab=${tab.value}]`)!.focus();
    }
  };
  return (
    <section class="i-instruments" aria-label={INSTRUMENTS}>
      {/* The parent of the instruments' own headings. */}
      <h2 class="i-hidden-text">{INSTRUMENTS}</h2>
      {access !== undefined && access.state.value !== "open" && (
        <p class="i-shut" role="status">
          {ACCESS[access.state.value]}
        </p>
      )}
      <div class="i-tabs" role="tablist" aria-label={INSTRUMENTS} ref={strip} onKeyDown={pressed}>
        {tabs.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`i-tab-${name}`}
            data-tab={name}
            aria-selected={name === shown}
            aria-controls="i-tab-panel"
            tabIndex={name === shown ? 0 : -1}
            onClick={() => (tab.value = name)}
          >
            {TABS[name]}
          </button>
        ))}
      </div>
      <div class={`i-tab-panel i-show-${shown}`} role="tabpanel" id="i-tab-panel" aria-labelledby={`i-tab-${shown}`} tabIndex={0} key={shown}>
        <Shown tab={shown} instruments={instruments} stats={stats} view={view} />
      </div>
    </section>
  );
}

function Shown({ tab, instruments, stats, view }: { tab: Tab; instruments: Instruments; stats: ReadStats; view: View }) {
  switch (tab) {
    case "tools":
      return <Timeline instruments={instruments} view={view} />;
    case "latency":
      return <LatencyPanel instruments={instruments} view={view} />;
    case "events":
      return <LogPanel instruments={instruments} view={view} />;
    case "state":
      return <StatePanel instruments={instruments} stats={stats} />;
    case "faults":
      return <FaultsPanel instruments={instruments} view={view} />;
  }
}

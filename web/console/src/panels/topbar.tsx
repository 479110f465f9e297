import type { ComponentChildren } from "preact";
import type { Console } from "../control/console.js";
import { running } from "../model/voice.js";
import { Gauge, Handset, Mark, Person, Plus, Sliders } from "../ui/icons.js";
import * as words from "../words.js";
import { AGENTS } from "./words-agents.js";
import { CALLS } from "./words-calls.js";
import "./topbar.css";

interface TopBarProps {
  console: Console;
  /** Whether the instruments are shown, in windows without room for both. */
  inside: boolean;
  onInside: () => void;
  onCalls: () => void;
  onAgents: () => void;
  onSetup: () => void;
  onHelp: () => void;
}

/** The page header: the name, the gateway's status, and the actions for the whole page. */
export function TopBar({ console, inside, onInside, onCalls, onAgents, onSetup, onHelp }: TopBarProps) {
  const voice = console.voice.value;
  // While the call cannot reach the gateway, its readiness does not matter.
  const gateway = voice.phase === "reconnecting" || (running(voice) && voice.restoring) ? "reconnecting" : console.gateway.value;
  const on = running(voice);
  const anew = (): void => {
    console.startAnew();
    // The button is now disabled and would lose the focus.
    document.getElementById("text")?.focus();
  };
  return (
    <header class="top">
      <h1>
        <Mark />
        voicegw
      </h1>
      <p class="gateway" data-state={gateway} role="status">
        <span class="lamp" aria-hidden="true" />
        <span>
          {words.GATEWAY[gateway]}
          {gateway === "simulator" && <span class="wide-only">{words.WITH_SIMULATOR}</span>}
        </span>
      </p>
      <div class="top-buttons">
        <button type="button" class="quiet" disabled={on || console.lines.value.length === 0} title={on ? words.HANG_UP_FIRST : undefined} onClick={anew}>
          <Labelled icon={<Plus />} label={words.NEW_CONVERSATION} />
        </button>
        <button type="button" class="quiet middle-only" aria-expanded={inside} aria-controls="inside" onClick={onInside}>
          <Gauge />
          {words.VIEWS.instruments}
        </button>
        <button type="button" class="quiet" aria-haspopup="dialog" onClick={onCalls}>
          <Labelled icon={<Handset />} label={CALLS.title} />
        </button>
        <button type="button" class="quiet" aria-haspopup="dialog" onClick={onAgents}>
          <Labelled icon={<Person />} label={AGENTS.title} />
        </button>
        <button type="button" class="quiet icon-only keys" aria-label={words.KEYS} title={words.KEYS} onClick={onHelp}>
          <span aria-hidden="true">?</span>
        </button>
        <button id="settings" type="button" class="quiet" aria-haspopup="dialog" onClick={onSetup}>
          <Labelled icon={<Sliders />} label={words.SETTINGS} />
        </button>
      </div>
    </header>
  );
}

/** An icon with its label; narrow windows show only the icon. */
function Labelled({ icon, label }: { icon: ComponentChildren; label: string }) {
  return (
    <>
      {icon}
      <span class="label">{label}</span>
    </>
  );
}

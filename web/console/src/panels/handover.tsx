// A button that switches the running call to another agent.
import { useEffect, useState } from "preact/hooks";
import { AgentsControl } from "../control/agents.js";
import type { Console } from "../control/console.js";
import { AGENTS } from "./words-agents.js";

/** Renders nothing without a call that can be switched to the agent. */
export function Handover({ console, agent, label }: { console: Console; agent: string; label: string }) {
  const { phase, session } = console.voice.value;
  const [said, setSaid] = useState("");
  const speaks = session?.agent === agent;
  useEffect(() => setSaid(""), [agent, speaks]);
  if (phase !== "open" || session === null || agent === "" || console.access.state.value !== "open") {
    return null;
  }
  const change = async (): Promise<void> => {
    setSaid(AGENTS.switching);
    const why = await new AgentsControl(console.access.request).switchCall(session.id, agent);
    setSaid(why ?? AGENTS.switchAsked);
  };
  return (
    <span class="handover">
      {!speaks && (
        <button type="button" onClick={() => void change()}>
          {label}
        </button>
      )}
      <span role="status" class="hint">
        {speaks ? AGENTS.speaks : said}
      </span>
    </span>
  );
}

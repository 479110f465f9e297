// The prompt and the tools of a running call's model.
import { useEffect, useState } from "preact/hooks";
import type { CallsControl } from "../control/calls.js";
import type { Prompt } from "../model/prompt.js";
import type { RunningCall } from "../model/running.js";
import { CopyButton } from "./json.js";
import { CALLS } from "./words-calls.js";

/** Loaded when opened, and again when another agent takes the call. */
export function PromptInForce({ control, call }: { control: CallsControl; call: RunningCall }) {
  const [open, setOpen] = useState(false);
  const [prompt, setPrompt] = useState<Prompt | null | undefined>(undefined);
  useEffect(() => {
    let on = open;
    if (open) {
      void control.prompt(call.id).then((found) => on && setPrompt(found));
    }
    return () => {
      on = false;
    };
  }, [open, call.agent]);
  return (
    <details class="calls-prompt" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{CALLS.prompt}</summary>
      {prompt == null ? <p role="status">{prompt === undefined ? CALLS.loading : CALLS.promptUntold}</p> : <Shown prompt={prompt} />}
    </details>
  );
}

function Shown({ prompt: { instructions, tools } }: { prompt: Prompt }) {
  return (
    <>
      <pre tabIndex={0} role="group" aria-label={CALLS.prompt}>
        {instructions}
      </pre>
      <p>
        <CopyButton what={CALLS.prompt} text={() => instructions} />
      </p>
      {tools.length > 0 && (
        <>
          <h4>{CALLS.promptTools}</h4>
          <dl>
            {tools.map(({ name, description }) => (
              <div key={name}>
                <dt>
                  <code>{name}</code>
                </dt>
                <dd>{description}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </>
  );
}

// Code for the current settings, to copy.
import { useState } from "preact/hooks";
import type { Settings } from "../model/settings.js";
import { snippet, type Kind } from "../model/snippet.js";
import { Radios } from "../ui/fields.js";
import { SETUP } from "../words.js";
import { CopyButton } from "./json.js";

export function CodeForThis({ settings }: { settings: Settings }) {
  const [kind, setKind] = useState<Kind>("javascript");
  const code = snippet(kind, settings, location.href);
  return (
    <fieldset>
      <legend>{SETUP.code}</legend>
      <p class="when">{SETUP.codeHint}</p>
      <Radios
        name="code"
        label={SETUP.codeFor}
        value={kind}
        choices={[
          ["javascript", SETUP.javascript],
          ["react", SETUP.react],
        ]}
        onPick={setKind}
      />
      <div class="code">
        <pre tabIndex={0} role="group" aria-label={SETUP.code}>
          <code>{code}</code>
        </pre>
        <CopyButton what={SETUP.code} text={() => code} />
      </div>
    </fieldset>
  );
}

import { useRef } from "preact/hooks";
import type { Console } from "../control/console.js";
import { Send, Stop } from "../ui/icons.js";
import * as words from "../words.js";
import "./composer.css";

/** The input field for the text agent. */
export function Composer({ console }: { console: Console }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const { phase, notice } = console.text.value;
  const busy = phase !== "ready";
  const none = console.offer.value?.textAgent === false;
  const send = (): void => {
    const text = field.current?.value.trim() ?? "";
    if (field.current !== null && text !== "" && console.write(text)) {
      field.current.value = "";
    }
    field.current?.focus();
  };
  const keyDown = (event: KeyboardEvent): void => {
    // In some scripts, Enter also confirms a character.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <form
      class="dock composer"
      data-side="text"
      aria-busy={busy}
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="unseen" for="text">
        {words.WRITE}
      </label>
      <div class="field">
        <textarea id="text" ref={field} rows={3} maxLength={16000} disabled={none} placeholder={none ? words.NO_TEXT_AGENT : words.WRITE} enterkeyhint="send" aria-describedby="text-hint" onKeyDown={keyDown} />
        {busy ? (
          <button type="button" class="icon-only" aria-label={words.STOP_TEXT} disabled={phase === "stopping"} onClick={() => console.stop()}>
            <Stop />
          </button>
        ) : (
          <button type="submit" class="primary icon-only" disabled={none} aria-label={words.SEND}>
            <Send />
          </button>
        )}
      </div>
      <p id="text-hint" class={`hint ${notice === null && !busy ? "ordinary" : ""}`}>
        {notice === null ? busy ? words.WAIT_FOR_ANSWER : words.WRITE_HINT : <NoticeText {...notice} />}
      </p>
    </form>
  );
}

function NoticeText({ title, advice }: { title: string; advice: string }) {
  return (
    <>
      <strong>{title}</strong> {advice}
    </>
  );
}

// Keys that do something wherever the focus is, or wherever it is on no field.
import type { Console } from "./console.js";

/** What keys do beside what the console does. */
export interface KeyDeeds {
  help(): void;
  /** Moves the focus to the question that waits. */
  question(): void;
}

/** What takes keys for itself. */
const TAKES_KEYS = "input, textarea, select, button, a[href], summary, [contenteditable], dialog, [role=tablist]";

/** Listens to the whole page; what it returns ends that. */
export function listenToKeys(console: Console, deeds: KeyDeeds): () => void {
  const ends = new AbortController();
  const options = { signal: ends.signal };
  document.addEventListener("keydown", (event) => down(event, console, deeds), options);
  document.addEventListener("keyup", (event) => (event.key === " " ? console.press(false) : undefined), options);
  // Whoever looks elsewhere does not let go of the key here.
  globalThis.addEventListener("blur", () => console.press(false), options);
  return () => ends.abort();
}

function down(event: KeyboardEvent, console: Console, deeds: KeyDeeds): void {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  // In a dialog, Escape closes it.
  if (event.key === "Escape" && document.querySelector("dialog[open]") === null) {
    console.stop();
    return;
  }
  if (event.target instanceof Element && event.target.closest(TAKES_KEYS) !== null) {
    return;
  }
  if (event.key === " " && console.voice.value.pushToTalk && console.voice.value.phase === "open") {
    // It would scroll.
    event.preventDefault();
    if (!event.repeat) {
      console.press(true);
    }
    return;
  }
  if (console.settings.value.shortcuts && !event.repeat) {
    single(event, console, deeds);
  }
}

function single(event: KeyboardEvent, console: Console, deeds: KeyDeeds): void {
  switch (event.key) {
    case "?":
      return deeds.help();
    case "q":
    case "Q":
      return deeds.question();
    case "m":
    case "M":
      return console.toggleMicrophone();
    default:
  }
}

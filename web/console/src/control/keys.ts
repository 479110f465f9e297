// Keys that do something wherever the focus is, or wherever it is in no field that takes them.
import { running } from "../model/voice.js";
import type { Console } from "./console.js";

/** What keys do beside what the console does. */
export interface KeyDeeds {
  help(): void;
  /** Moves the focus to the question that waits. */
  question(): void;
}

/** Fields that take letters for themselves: a list moves to the entry that begins with one. */
const TAKES_LETTERS =
  "input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=submit]), textarea, select, [contenteditable]:not([contenteditable=false])";
/** What the space bar belongs to, even while it would talk: Enter does not do the same there. */
const TAKES_SPACE = `${TAKES_LETTERS}, input, dialog`;

/** Listens to the whole page; what it returns ends that. */
export function listenToKeys(console: Console, deeds: KeyDeeds): () => void {
  const ends = new AbortController();
  const options = { signal: ends.signal };
  document.addEventListener("keydown", (event) => down(event, console, deeds), options);
  document.addEventListener("keyup", (event) => up(event, console), options);
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
  if (talks(event, console)) {
    // It would scroll, or press the button that has the focus.
    event.preventDefault();
    if (!event.repeat) {
      console.press(true);
    }
    return;
  }
  if (console.settings.value.shortcuts && !event.repeat && !within(event, TAKES_LETTERS)) {
    single(event, console, deeds);
  }
}

function up(event: KeyboardEvent, console: Console): void {
  if (event.key !== " ") {
    return;
  }
  if (!event.defaultPrevented && talks(event, console)) {
    event.preventDefault();
  }
  console.press(false);
}

/** Whether a key is the one that talks: the space bar, in a call with push-to-talk, wherever no field needs it. */
function talks(event: KeyboardEvent, console: Console): boolean {
  return event.key === " " && console.voice.value.pushToTalk && running(console.voice.value) && !within(event, TAKES_SPACE);
}

function within(event: KeyboardEvent, selector: string): boolean {
  return event.target instanceof Element && event.target.closest(selector) !== null;
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

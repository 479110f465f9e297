// Keyboard shortcuts that work everywhere, or outside of fields that use the key.
import { running } from "../model/voice.js";
import type { Console } from "./console.js";

/** Actions that the console does not have. */
export interface KeyActions {
  help(): void;
  /** Moves the focus to the open question. */
  question(): void;
}

/** Fields that use letters. A list jumps to the entry that begins with one. */
const TAKES_LETTERS =
  "input:not([type=checkbox], [type=radio], [type=range], [type=button], [type=submit]), textarea, select, [contenteditable]:not([contenteditable=false])";
/** Elements that use the space bar, even in push-to-talk, because Enter does not do the same there. */
const TAKES_SPACE = `${TAKES_LETTERS}, input, dialog`;

/** Listens on the whole page. Call the returned function to stop. */
export function listenToKeys(console: Console, actions: KeyActions): () => void {
  const ends = new AbortController();
  const options = { signal: ends.signal };
  document.addEventListener("keydown", (event) => down(event, console, actions), options);
  document.addEventListener("keyup", (event) => up(event, console), options);
  // A window without focus does not receive the key's release.
  globalThis.addEventListener("blur", () => console.press(false), options);
  return () => ends.abort();
}

function down(event: KeyboardEvent, console: Console, actions: KeyActions): void {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  // In a dialog, Escape closes it.
  if (event.key === "Escape" && document.querySelector("dialog[open]") === null) {
    console.stop();
    return;
  }
  if (talks(event, console)) {
    // Otherwise the key scrolls or presses the focused button.
    event.preventDefault();
    if (!event.repeat) {
      console.press(true);
    }
    return;
  }
  if (console.settings.value.shortcuts && !event.repeat && !within(event, TAKES_LETTERS)) {
    single(event, console, actions);
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

/** Reports whether the key talks: the space bar, in a push-to-talk call, unless a field uses it. */
function talks(event: KeyboardEvent, console: Console): boolean {
  return event.key === " " && console.voice.value.pushToTalk && running(console.voice.value) && !within(event, TAKES_SPACE);
}

function within(event: KeyboardEvent, selector: string): boolean {
  return event.target instanceof Element && event.target.closest(selector) !== null;
}

function single(event: KeyboardEvent, console: Console, actions: KeyActions): void {
  switch (event.key) {
    case "?":
      return actions.help();
    case "q":
    case "Q":
      return actions.question();
    case "m":
    case "M":
      return console.toggleMicrophone();
    default:
  }
}

import { Asked } from "./asked.js";
import { Lines } from "./lines.js";
import { Meter } from "./meter.js";
import type { Providers } from "./gateway.js";
import type { Question } from "./questions.js";
import { activity, type State } from "./state.js";
import type { Line } from "./transcript.js";
import * as words from "./words.js";

/** What the user can do; the view calls them from event handlers. */
export interface Actions {
  start(provider: string | null): void;
  toggleMicrophone(): void;
  stop(): void;
  hangUp(): void;
  say(text: string, provider: string | null): void;
  resolve(token: string, approved: boolean): void;
}

/** The page's elements. Everything shown passes through here. */
export class View {
  private readonly title = element("title", HTMLElement);
  private readonly problem = element("problem", HTMLElement);
  private readonly hint = element("hint", HTMLElement);
  private readonly latency = element("latency", HTMLElement);
  private readonly where = element("where", HTMLElement);
  private readonly picker = element("picker", HTMLElement);
  private readonly select = element("provider", HTMLSelectElement);
  private readonly stage = element("stage", HTMLElement);
  private readonly startRow = element("start-row", HTMLElement);
  private readonly callRow = element("call-row", HTMLElement);
  private readonly startButton = element("start", HTMLButtonElement);
  private readonly micButton = element("mic", HTMLButtonElement);
  private readonly stopButton = element("stop", HTMLButtonElement);
  private readonly input = element("text", HTMLInputElement);
  private readonly announce = element("announce", HTMLElement);
  private readonly alert = element("alert", HTMLElement);
  private readonly meters = { user: new Meter(element("meter-user", HTMLElement)), model: new Meter(element("meter-model", HTMLElement)) };
  private readonly lines: Lines;
  private readonly asked: Asked;
  private shown: State | null = null;
  /** The newest question that screen readers were told of. */
  private announced: Question | undefined;

  constructor(actions: Actions) {
    const log = element("log", HTMLElement);
    this.lines = new Lines(log, element("lines", HTMLElement));
    this.asked = new Asked(
      element("asked", HTMLElement),
      element("asked-heading", HTMLElement),
      element("questions", HTMLElement),
      log,
      actions.resolve,
    );
    this.startButton.onclick = () => actions.start(this.provider());
    this.micButton.onclick = () => actions.toggleMicrophone();
    this.stopButton.onclick = () => actions.stop();
    element("hangup", HTMLButtonElement).onclick = () => actions.hangUp();
    element("composer", HTMLFormElement).onsubmit = (event) => {
      event.preventDefault();
      const text = this.input.value.trim();
      this.input.value = "";
      this.input.focus();
      if (text !== "") {
        actions.say(text, this.provider());
      }
    };
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.stopButton.disabled) {
        actions.stop();
      }
    });
  }

  /** Fills the picker. Not called when the gateway does not tell. */
  providers(list: Providers): void {
    for (const { name, model } of list.providers) {
      const label = model === "" ? name : `${name} · ${model}`;
      this.select.add(new Option(label, name, false, name === list.default));
    }
    this.picker.dataset["ready"] = "";
  }

  state(state: State): void {
    const before = this.shown;
    this.shown = state;
    const now = activity(state);
    const { title, hint } = words.ACTIVITY[now];
    this.stage.dataset["activity"] = now;
    setText(this.title, title);
    setText(this.problem, state.notice?.title ?? "");
    setText(this.hint, state.notice?.advice ?? (now === "ended" ? words.endedHint(state.reason) : hint));
    setText(this.latency, words.answeredIn(state.answeredInMs));
    this.controls(state);
    this.speak(before, state);
  }

  transcript(lines: readonly Line[]): void {
    this.lines.show(lines);
  }

  questions(questions: readonly Question[]): void {
    this.asked.show(questions);
    const newest = questions.at(-1);
    if (newest !== undefined && newest !== this.announced) {
      this.announced = newest;
      this.alert.textContent = words.askedAloud(newest);
    }
  }

  level(side: "user" | "model", level: number): void {
    this.meters[side].set(level);
  }

  private controls(state: State): void {
    const over = state.phase === "ended" || state.phase === "failed";
    const running = !over && state.phase !== "idle";
    const focus = document.activeElement;
    const hadFocus = this.startRow.contains(focus) || this.callRow.contains(focus);
    const swapped = this.callRow.hidden === running;
    this.startRow.hidden = running;
    this.callRow.hidden = !running;
    setText(this.startButton, over ? "Start again" : "Start talking");
    this.stopButton.disabled = state.phase !== "open" || (state.sounding === null && !state.owed);
    setText(this.micButton, { off: "Use mic", live: "Mute", muted: "Unmute" }[state.mic]);
    // The picker and the plain text take turns in the same place.
    this.picker.hidden = running || this.picker.dataset["ready"] === undefined;
    this.where.hidden = !this.picker.hidden;
    setText(this.where, state.provider === "" ? "" : `${state.provider} · ${state.model}`);
    if (swapped && hadFocus) {
      // The button that was pressed is gone; its place is taken by another.
      // Mute, not Hang up: a second press must do no harm.
      (running ? this.micButton : this.startButton).focus();
    }
  }

  // Screen readers hear only what changes the situation. The states of every
  // turn would talk over the model, and into the microphone.
  private speak(before: State | null, state: State): void {
    if (state.notice !== null && state.notice !== before?.notice) {
      this.alert.textContent = `${state.notice.title} ${state.notice.advice}`;
    }
    if (before === null || state.phase === before.phase) {
      return;
    }
    if (state.phase === "open") {
      this.announce.textContent = state.mic === "live" ? "Connected. The model is listening." : "Connected. Type to begin.";
    } else if (state.phase === "ended" && state.notice === null) {
      this.announce.textContent = `Ended. ${words.endedHint(state.reason)}`;
    } else {
      this.announce.textContent = "";
    }
  }

  private provider(): string | null {
    return this.select.value === "" ? null : this.select.value;
  }
}

/** The element with an id, of a type; the page and this file belong together. */
function element<T extends HTMLElement>(id: string, type: { new (): T }): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) {
    throw new Error(`index.html has no ${type.name} with the id ${id}`);
  }
  return found;
}

function setText(target: HTMLElement, text: string): void {
  if (target.textContent !== text) {
    target.textContent = text;
  }
}

import { answerable, type Question } from "./questions.js";
import * as words from "./words.js";

/** Longer arguments are folded: so many characters and lines are shown at once. */
const SHORT_ARGS = { characters: 240, lines: 7 };

/**
 * After a card has come or gone the others have moved: a press that was meant
 * for what was there before (a double click) does nothing for so long.
 */
const SETTLE_MS = 500;

const TICK_MS = 250;

/** A question's elements. */
interface Card {
  item: HTMLElement;
  left: HTMLElement;
  buttons: HTMLButtonElement[];
}

/**
 * The open questions, between the transcript and the text field. Nothing waits
 * for them: the conversation goes on, and no key but the buttons' own answers.
 */
export class Asked {
  private readonly cards = new Map<Question, Card>();
  private movedAt = -Infinity;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly panel: HTMLElement,
    private readonly heading: HTMLElement,
    private readonly list: HTMLElement,
    /** Takes the focus of a button that goes away. */
    private readonly rest: HTMLElement,
    private readonly resolve: (token: string, approved: boolean) => void,
  ) {}

  show(questions: readonly Question[]): void {
    const present = new Set(questions);
    for (const [question, card] of this.cards) {
      if (!present.has(question)) {
        this.remove(question, card);
      }
    }
    for (const question of questions) {
      if (!this.cards.has(question)) {
        this.add(question);
      }
    }
    this.panel.hidden = questions.length === 0;
    this.heading.textContent = words.askedHeading(questions.length);
    this.tick();
    clearInterval(this.timer);
    this.timer = questions.length === 0 ? undefined : setInterval(() => this.tick(), TICK_MS);
  }

  private tick(): void {
    const now = Date.now();
    for (const [question, { item, left, buttons }] of this.cards) {
      const text = words.timeLeft(question, now);
      if (left.textContent !== text) {
        left.textContent = text;
      }
      const off = !answerable(question, now);
      for (const button of buttons) {
        if (off && button === document.activeElement) {
          item.focus(); // A button that is off would lose the keyboard.
        }
        button.disabled = off;
      }
    }
  }

  private add(question: Question): void {
    const item = node("li", "card");
    item.tabIndex = -1;
    item.setAttribute("role", "group");
    item.setAttribute("aria-label", question.preview);
    const left = node("span", "left");
    const facts = node("p", "facts", node("code", "", question.tool), left);
    // Decline comes first: it is what a hasty key press should meet.
    const buttons = [this.button(question, "Decline", false), this.button(question, "Approve", true)];
    item.append(node("p", "preview", question.preview), facts, argsOf(question, this.cards.size === 0), node("div", "answers", ...buttons));
    this.cards.set(question, { item, left, buttons });
    this.list.append(item);
    this.movedAt = performance.now();
  }

  private remove(question: Question, { item }: Card): void {
    const focused = item.contains(document.activeElement);
    item.remove();
    this.cards.delete(question);
    this.movedAt = performance.now();
    if (focused) {
      // The keyboard must not be lost, and must not land on another answer.
      const next = this.cards.values().next();
      (next.done === true ? this.rest : next.value.item).focus();
    }
  }

  private button(question: Question, label: string, approved: boolean): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.className = approved ? "primary" : "";
    button.onclick = (event) => {
      // A key's click has no detail: it means the button that has the focus.
      const hasty = event.detail > 0 && performance.now() - this.movedAt < SETTLE_MS;
      if (!hasty) {
        this.resolve(question.token, approved);
      }
    };
    return button;
  }
}

/** The arguments: shown at once if there is room and they are short. */
function argsOf({ args }: Question, room: boolean): HTMLElement {
  if (args === "") {
    return node("p", "none", "It takes no arguments.");
  }
  const details = document.createElement("details");
  details.open = room && args.length <= SHORT_ARGS.characters && args.split("\n").length <= SHORT_ARGS.lines;
  const text = node("pre", "", args);
  text.tabIndex = 0; // It may scroll.
  details.append(node("summary", "", "Exact arguments"), text);
  return details;
}

function node(tag: string, className: string, ...content: (string | HTMLElement)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
}

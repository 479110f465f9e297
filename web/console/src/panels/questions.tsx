import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Console } from "../control/console.js";
import { answerable, type Question } from "../model/questions.js";
import { useNow } from "../ui/now.js";
import * as words from "../words.js";
import "./questions.css";

/** Longer arguments are folded to this many characters and lines. */
const SHORT_ARGS = { characters: 320, lines: 9 };

/**
 * Cards move when one is added or removed. For this time a press, such as a double click's second, does
 * nothing.
 */
const SETTLE_MS = 500;

/**
 * The open questions, between the conversation and the text fields. They block nothing and do not take the
 * focus, and only a card's own buttons answer it.
 */
export function Questions({ console }: { console: Console }) {
  const questions = console.questions.value;
  const now = useNow(250, questions.length > 0);
  const panel = useRef<HTMLElement>(null);
  const movedAt = useRef(-Infinity);
  const orphaned = useRef(false);
  const tokens = questions.map(({ token }) => token).join(" ");
  useLayoutEffect(() => {
    movedAt.current = performance.now();
    if (orphaned.current) {
      orphaned.current = false;
      // Keep the focus in the page, but not on another answer.
      (panel.current?.querySelector<HTMLElement>(".question") ?? document.getElementById("log"))?.focus();
    }
  }, [tokens]);
  const answer = (event: MouseEvent, token: string, approved: boolean): void => {
    // A click from the keyboard has no detail and refers to the focused button.
    const hasty = event.detail > 0 && performance.now() - movedAt.current < SETTLE_MS;
    if (!hasty) {
      console.resolve(token, approved);
    }
  };
  return (
    <section id="questions" ref={panel} class="questions" role="alertdialog" aria-modal="false" aria-labelledby="questions-title" hidden={questions.length === 0}>
      <h2 id="questions-title">{words.askedHeading(questions.length)}</h2>
      {questions.map((question, i) => (
        <Card key={question.token} question={question} first={i === 0} now={now} answer={answer} orphaned={orphaned} />
      ))}
    </section>
  );
}

interface CardProps {
  question: Question;
  first: boolean;
  now: number;
  answer: (event: MouseEvent, token: string, approved: boolean) => void;
  /** Set when the card is removed while it has the focus. */
  orphaned: RefObject<boolean>;
}

function Card({ question, first, now, answer, orphaned }: CardProps) {
  const card = useRef<HTMLDivElement>(null);
  const [entered, setEntered] = useState(false);
  const off = !answerable(question, now);
  useLayoutEffect(() => {
    const element = card.current;
    return () => {
      if (element?.contains(document.activeElement) === true) {
        orphaned.current = true;
      }
    };
  }, []);
  // Read before the buttons are disabled, because some browsers then remove the focus at once.
  const held = document.activeElement instanceof HTMLButtonElement && card.current?.contains(document.activeElement) === true;
  useLayoutEffect(() => {
    if (off && held) {
      card.current?.focus(); // a disabled button would lose the focus
    }
  }, [off]);
  const button = (approved: boolean) => (
    <button
      type="button"
      class={approved ? "primary" : ""}
      disabled={off}
      // A key press meant for another place must not answer, so the focus enters the card first.
      tabIndex={entered ? 0 : -1}
      onClick={(event) => answer(event, question.token, approved)}
      onKeyDown={(event) => event.repeat && event.preventDefault()}
    >
      {approved ? words.APPROVE : words.DECLINE}
    </button>
  );
  return (
    <div
      ref={card}
      class="question"
      data-side={question.side}
      tabIndex={0}
      role="group"
      aria-label={question.preview}
      onFocusIn={() => setEntered(true)}
      onFocusOut={(event) => setEntered(event.currentTarget.contains(event.relatedTarget as Node | null))}
    >
      <div class="asked">
        <p class="asks">
          {words.ASKS[question.side]} · <code>{question.tool}</code>
        </p>
        <p class="preview">{question.preview}</p>
        <Arguments question={question} room={first} />
      </div>
      <div class="answers">
        <span class="left">{words.timeLeft(question, now)}</span>
        {/* Decline comes first, for hasty key presses. */}
        {button(false)}
        {button(true)}
      </div>
    </div>
  );
}

/** The arguments, unfolded if there is room and they are short. */
function Arguments({ question: { args }, room }: { question: Question; room: boolean }) {
  const [open] = useState(room && args.length <= SHORT_ARGS.characters && args.split("\n").length <= SHORT_ARGS.lines);
  if (args === "") {
    return <p class="none">{words.NO_ARGUMENTS}</p>;
  }
  return (
    <details open={open}>
      <summary>{words.EXACT_ARGUMENTS}</summary>
      {/* Focusable, because it may scroll. */}
      <pre tabIndex={0} aria-label={words.EXACT_ARGUMENTS}>
        {args}
      </pre>
    </details>
  );
}

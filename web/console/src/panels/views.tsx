import * as words from "../words.js";
import "./views.css";

/** The part shown if there is no room for all. */
export type View = keyof typeof words.VIEWS;

/** The switch between the parts, in narrow windows. */
export function Views({ view, questions, onView }: { view: View; questions: number; onView: (view: View) => void }) {
  return (
    <nav class="views" aria-label={words.VIEWS_LABEL}>
      {(Object.keys(words.VIEWS) as View[]).map((name) => (
        <button key={name} type="button" data-view={name} aria-pressed={name === view} onClick={() => onView(name)}>
          {words.VIEWS[name]}
          {name !== "instruments" && questions > 0 && view === "instruments" ? ` (${questions})` : ""}
        </button>
      ))}
    </nav>
  );
}

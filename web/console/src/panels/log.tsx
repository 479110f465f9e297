// All events as a list to search, read and save.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Instruments } from "../instruments.js";
import { GROUPS, Search, toLines, type Entry, type Filter } from "../model/log.js";
import { Empty, save } from "./bits.js";
import { Json } from "./json.js";
import { toggled, type View } from "./view.js";
import { counted, DIRECTION, EVENTS, GROUP, timeOfDay, TURN } from "./words-instruments.js";
import "./log.css";

export function LogPanel({ instruments, view }: { instruments: Instruments; view: View }) {
  const filter = view.filter.value;
  const { log } = instruments;
  const search = useMemo(() => new Search(log, filter), [log, filter]);
  void instruments.logged.value;
  const shown = view.paused.value ?? search.now();
  const chosen = view.chosen.value;
  return (
    <div class="i-log">
      <Controls instruments={instruments} view={view} shown={shown} />
      {log.length === 0 && view.paused.value === null ? <Empty>{EVENTS.empty}</Empty> : <List entries={shown} view={view} follow={view.paused.value === null} />}
      <div class="i-log-whole">{chosen === null ? <p class="i-quiet">{EVENTS.choose}</p> : <Whole entry={chosen} />}</div>
      <p class="i-quiet i-log-foot">
        <span role="status">{counted(shown.length, log.length, log.dropped)}</span> {EVENTS.secrets}
      </p>
    </div>
  );
}

function Controls({ instruments, view, shown }: { instruments: Instruments; view: View; shown: readonly Entry[] }) {
  const search = useId();
  const filter = view.filter.value;
  const change = (part: Partial<Filter>): void => {
    view.filter.value = { ...view.filter.value, ...part };
    view.paused.value = view.paused.value === null ? null : new Search(instruments.log, view.filter.value).now();
  };
  return (
    <div class="i-log-controls">
      <label class="i-hidden-text" for={search}>
        {EVENTS.search}
      </label>
      <input id={search} class="i-input" type="search" placeholder={EVENTS.search} title={EVENTS.searchHint} value={filter.text} onInput={(event) => change({ text: event.currentTarget.value })} />
      <select class="i-input" aria-label={EVENTS.side} value={filter.side} onChange={(event) => change({ side: event.currentTarget.value as Filter["side"] })}>
        <option value="">{EVENTS.sides}</option>
        <option value="voice">{EVENTS.voice}</option>
        <option value="text">{EVENTS.text}</option>
      </select>
      <select class="i-input" aria-label={EVENTS.direction} value={filter.direction} onChange={(event) => change({ direction: event.currentTarget.value as Filter["direction"] })}>
        <option value="">{EVENTS.ways}</option>
        <option value="in">{DIRECTION.in}</option>
        <option value="out">{DIRECTION.out}</option>
        <option value="here">{DIRECTION.here}</option>
      </select>
      <Kinds filter={filter} change={change} />
      <span class="i-log-buttons">
        <button type="button" class="small" aria-pressed={view.paused.value !== null} onClick={() => (view.paused.value = view.paused.value === null ? shown : null)}>
          {EVENTS.pause}
        </button>
        <button type="button" class="small" title={EVENTS.saveTitle} disabled={shown.length === 0} onClick={() => save("voicegw-events.ndjson", toLines(shown), "application/x-ndjson")}>
          {EVENTS.save}
        </button>
        <button type="button" class="small" onClick={() => clear(instruments, view)}>
          {EVENTS.clear}
        </button>
      </span>
    </div>
  );
}

function clear(instruments: Instruments, view: View): void {
  instruments.log.clear();
  view.paused.value = null;
  view.chosen.value = null;
  instruments.logged.value++;
}

/** A menu of checkboxes for the types listed. */
function Kinds({ filter, change }: { filter: Filter; change: (part: Partial<Filter>) => void }) {
  const details = useRef<HTMLDetailsElement>(null);
  const close = (event: KeyboardEvent): void => {
    if (event.key === "Escape" && details.current!.open) {
      details.current!.open = false;
      details.current!.querySelector("summary")!.focus();
      event.stopPropagation();
    }
  };
  const left = (event: FocusEvent): void => {
    if (event.relatedTarget !== null && !details.current!.contains(event.relatedTarget as Node)) {
      details.current!.open = false;
    }
  };
  return (
    <details class="i-kinds" ref={details} onKeyDown={close} onFocusOut={left}>
      <summary>
        {EVENTS.kinds} <span class="i-quiet">{`${filter.groups.size}/${GROUPS.length}`}</span>
      </summary>
      <fieldset class="i-kinds-list">
        <legend class="i-hidden-text">{EVENTS.kinds}</legend>
        {GROUPS.map((group) => (
          <label key={group}>
            <input type="checkbox" checked={filter.groups.has(group)} onChange={() => change({ groups: toggled(filter.groups, group) })} />
            {GROUP[group]}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

const ARROW = { in: "←", out: "→", here: "·" } as const;
/** Rows rendered above and below the visible ones. */
const SPARE = 8;

/** Renders only the visible rows, because thousands would make the page slow. */
function List({ entries, view, follow }: { entries: readonly Entry[]; view: View; follow: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const name = useId();
  const [seen, setSeen] = useState({ top: 0, height: 400 });
  const row = rowHeight();
  const atEnd = useRef(true);
  const chosen = view.chosen.value;
  const active = chosen === null ? -1 : entries.findIndex(({ number }) => number === chosen.number);

  const scrolled = (): void => {
    if (box.current === null) {
      return;
    }
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    atEnd.current = scrollTop + clientHeight >= scrollHeight - row;
    setSeen({ top: scrollTop, height: clientHeight });
  };
  useEffect(() => {
    const observer = new ResizeObserver(scrolled);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (follow && atEnd.current) {
      box.current!.scrollTop = box.current!.scrollHeight;
    }
  }, [entries, follow]);

  const choose = (index: number): void => {
    const entry = entries[Math.min(entries.length - 1, Math.max(0, index))];
    if (entry === undefined) {
      return;
    }
    view.chosen.value = entry;
    const top = entries.indexOf(entry) * row;
    const { scrollTop, clientHeight } = box.current!;
    if (top < scrollTop || top + row > scrollTop + clientHeight) {
      box.current!.scrollTop = top < scrollTop ? top : top + row - clientHeight;
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(seen.height / row) - 1);
    const from = active < 0 ? entries.length : active;
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: entries.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      choose(to);
    }
  };

  const first = Math.max(0, Math.floor(seen.top / row) - SPARE);
  const last = Math.min(entries.length, Math.ceil((seen.top + seen.height) / row) + SPARE);
  const visible = entries.slice(first, last);
  if (entries.length === 0) {
    return (
      <div class="i-log-list" ref={box}>
        <Empty>{EVENTS.none}</Empty>
      </div>
    );
  }
  return (
    <div
      class="i-log-list"
      ref={box}
      role="listbox"
      tabIndex={0}
      aria-label={EVENTS.label}
      aria-activedescendant={active >= first && active < last ? `${name}-${chosen!.number}` : undefined}
      onScroll={scrolled}
      onKeyDown={pressed}
    >
      <div class="i-log-room" role="presentation" style={{ height: `${entries.length * row}px` }}>
        {visible.map((entry, i) => (
          <Row key={entry.number} entry={entry} id={`${name}-${entry.number}`} top={(first + i) * row} place={first + i + 1} of={entries.length} chosen={entry.number === chosen?.number} choose={() => choose(first + i)} />
        ))}
      </div>
    </div>
  );
}

interface RowProps {
  entry: Entry;
  id: string;
  top: number;
  place: number;
  of: number;
  chosen: boolean;
  choose: () => void;
}

function Row({ entry, id, top, place, of, chosen, choose }: RowProps) {
  return (
    <div
      id={id}
      class={`i-log-row ${entry.bad ? "i-log-bad" : ""}`}
      role="option"
      aria-selected={chosen}
      aria-posinset={place}
      aria-setsize={of}
      style={{ transform: `translateY(${top}px)` }}
      onClick={choose}
    >
      <span class="i-log-time">{timeOfDay(entry.wall)}</span>
      <span class={`i-log-way i-log-${entry.direction}`} aria-hidden="true">
        {ARROW[entry.direction]}
      </span>
      <span class="i-hidden-text">{DIRECTION[entry.direction]}</span>
      <span class="i-log-type">{entry.type}</span>
      <span class="i-log-turn">{TURN.inline(entry.turn)}</span>
      <span class="i-log-json">{brief(entry)}</span>
    </div>
  );
}

function Whole({ entry }: { entry: Entry }) {
  return (
    <>
      <p class="i-log-about">
        <strong>{entry.type}</strong>{" "}
        <span class="i-quiet">
          {DIRECTION[entry.direction]}, {entry.side}, {timeOfDay(entry.wall)}
        </span>
      </p>
      <Json title={EVENTS.all} level={3} value={JSON.parse(entry.json) as unknown} />
    </>
  );
}

/** The event's contents without the fields in other columns. */
function brief({ json }: Entry): string {
  return json.slice(0, 300).replace(/^\{"type":"[^"]*",?/, "").replace(/"seq":\d+,?/, "").replace(/"turn":\d+,?/, "").replace(/\}$/, "").replaceAll('"', "");
}

/** In px: 1.75 rem, as in log.css. */
function rowHeight(): number {
  return 1.75 * (parseFloat(getComputedStyle(document.documentElement).fontSize) || 16);
}

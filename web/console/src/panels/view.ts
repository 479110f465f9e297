// What the user has opened and chosen in the instruments: it stays while another tab is shown.
import { signal } from "@preact/signals";
import { GROUPS, type Entry, type Filter } from "../model/log.js";
import { TABS } from "./words-instruments.js";

export type Tab = keyof typeof TABS;

export class View {
  readonly tab = signal<Tab>("tools");
  /** Calls and turns whose details are open, by their names. */
  readonly calls = signal<ReadonlySet<string>>(new Set());
  readonly turns = signal<ReadonlySet<string>>(new Set());
  readonly filter = signal<Filter>({ text: "", side: "", direction: "", groups: new Set(GROUPS.filter((group) => group !== "drafts" && group !== "reports")) });
  /** What the list shows while it is paused; null while it follows. */
  readonly paused = signal<readonly Entry[] | null>(null);
  /** The line whose whole is shown. */
  readonly chosen = signal<Entry | null>(null);
  /** How long faults last, in ms by their words, where the user has said it. */
  readonly lasting = signal<Readonly<Record<string, number>>>({});

  toggleCall(name: string): void {
    this.calls.value = toggled(this.calls.value, name);
  }

  toggleTurn(name: string): void {
    this.turns.value = toggled(this.turns.value, name);
  }
}

/** A copy with the name, or without it. */
export function toggled<T>(set: ReadonlySet<T>, name: T): ReadonlySet<T> {
  const copy = new Set(set);
  if (!copy.delete(name)) {
    copy.add(name);
  }
  return copy;
}

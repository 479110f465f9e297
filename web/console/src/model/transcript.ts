import type { TextDelta, TextDone, ToolEnded, ToolProgress, ToolStarted, TranscriptMessage, UiImage } from "@voicegw/client";
import type { Side } from "./feed.js";
import { pictureUrl } from "./shape.js";
import type { Handoff, Kind, Line, LineOf, Outcome, Remark, Trouble, Utterance } from "./lines.js";

/** The most lines kept on the page; the gateway has the whole conversation. */
const MAX_LINES = 500;

/**
 * The source of messages: a voice session or a request to the text agent. Ids and turns are unique only
 * within it.
 */
export interface Source {
  readonly side: Side;
  readonly id: string;
}

type Without<L extends Line> = L extends Line ? Omit<L, "kind" | "key" | "side" | "at"> : never;

/**
 * The conversation as shown: text and voice on one time axis, ordered by the start of each utterance. The
 * user's words often arrive after the answer.
 */
export class Transcript {
  private ordered: readonly Line[] = [];
  private counted = 0;
  /** Keys of placeholders that words have filled, by the key of the words. */
  private readonly places = new Map<string, string>();

  /** A new array after each change. */
  get lines(): readonly Line[] {
    return this.ordered;
  }

  clear(): void {
    this.ordered = [];
    this.places.clear();
  }

  /** Adds the lines from before this page, with an optional remark. */
  recall(lines: readonly Line[], remark = ""): void {
    const at = lines.at(-1)?.at ?? 0;
    const about: readonly Line[] = remark === "" ? [] : [{ kind: "remark", key: "recalled", side: "text", text: remark, at }];
    this.ordered = [...lines, ...about, ...this.ordered].slice(-MAX_LINES);
  }

  /** The lines of a source for the next page, by their message names. */
  keep(source: Source): readonly Line[] {
    const own = new Map([...this.places].map(([name, place]) => [place, name]));
    const lines = this.ordered.filter((line) => within(source, line) && (line.kind !== "utterance" || line.state !== "hearing"));
    return lines.map((line) => ({ ...line, key: own.get(line.key) ?? line.key }));
  }

  /** Restores the previous page's lines of a source, unless this page already has lines of it. */
  restore(source: Source, lines: readonly Line[]): void {
    if (!this.ordered.some((line) => within(source, line))) {
      lines.forEach((line) => this.insert({ ...line, restored: true }));
    }
  }

  /** The user begins to speak. Adds a placeholder for the words. */
  hearing(source: Source, turn: number | undefined): void {
    if (this.of("utterance").some((line) => line.state === "hearing" && line.turn === turn && within(source, line))) {
      return;
    }
    this.insert({ ...said(source, `hearing-${++this.counted}`, "user"), state: "hearing", turn, at: this.newest() });
  }

  /** Handles a transcript message: a new utterance, or the whole text so far of a known one. */
  upsert(source: Source, message: TranscriptMessage): void {
    const started = Date.parse(message.started_at);
    const known = this.utterance(source, message);
    const line: Utterance = {
      ...(known ?? { ...said(source, message.id, message.role), typed: message.role === "user" && !this.spoken(source, message.turn) }),
      text: message.text,
      state: message.final ? "final" : "open",
      turn: message.turn ?? known?.turn,
      pending: false,
      at: Number.isNaN(started) ? (known?.at ?? this.newest()) : started,
    };
    if (known === undefined) {
      this.insert(line);
    } else if (line.at === known.at || known.state === "hearing" || known.restored === true) {
      // The user's words stay at their placeholder, even after a reload.
      this.replace(known, { ...line, at: known.at });
    } else {
      this.remove(known);
      this.insert(line);
    }
    this.called(key(source, message.id), line.key);
  }

  /** Shows the user's typed text before the gateway confirms it. */
  typed(source: Source, id: string, text: string): void {
    // Lines are ordered by the gateway's clock, which may differ from ours, so our own new line goes last.
    this.insert({ ...said(source, id, "user"), text, state: "final", typed: true, pending: source.side === "voice", at: this.newest() });
  }

  /** Handles a piece of the text agent's answer. */
  delta(source: Source, message: TextDelta): void {
    const known = this.find("utterance", key(source, message.item_id));
    if (known === undefined) {
      this.insert({ ...said(source, message.item_id, "assistant"), text: message.text, turn: message.turn, typed: true, at: this.newest() });
    } else {
      this.replace(known, { ...known, text: known.text + message.text });
    }
  }

  /** Handles the whole of one text of the text agent. */
  done(source: Source, message: TextDone): void {
    const known = this.find("utterance", key(source, message.item_id));
    const line = known ?? { ...said(source, message.item_id, "assistant"), typed: true, at: this.newest() };
    this.put(known, { ...line, text: message.text, turn: message.turn ?? line.turn, state: "final", cut: message.cut === true });
  }

  /** A call begins, or, after a reload, a running one is reported again. */
  toolStarted(source: Source, message: ToolStarted): void {
    const known = this.find("tool", key(source, message.call_id));
    this.put(known, {
      ...known,
      kind: "tool",
      key: key(source, message.call_id),
      side: source.side,
      tool: message.tool,
      state: "running",
      durationMs: undefined,
      error: undefined,
      deduplicated: false,
      clamped: {},
      at: known?.at ?? this.newest(),
    });
  }

  toolProgress(source: Source, message: ToolProgress): void {
    const line = this.find("tool", key(source, message.call_id));
    if (line?.state === "running") {
      this.replace(line, { ...line, durationMs: message.duration_ms });
    }
  }

  toolEnded(source: Source, message: ToolEnded): void {
    const line = this.find("tool", key(source, message.call_id));
    if (line === undefined) {
      return;
    }
    this.replace(line, {
      ...line,
      state: message.ok === false ? "failed" : "done",
      durationMs: message.duration_ms,
      error: message.error,
      deduplicated: message.deduplicated === true,
      clamped: message.clamped ?? {},
    });
  }

  picture(source: Source, message: UiImage): void {
    const url = pictureUrl(message.url);
    if (url === "") {
      return;
    }
    this.insert({
      kind: "picture",
      key: key(source, message.id ?? message.url),
      side: source.side,
      url,
      prompt: message.prompt ?? "",
      width: message.width ?? 0,
      height: message.height ?? 0,
      at: this.newest(),
    });
  }

  /** Adds the outcome of a question. */
  outcome(side: Side, what: Without<Outcome>): void {
    this.insert({ kind: "outcome", key: this.name("outcome"), side, at: this.newest(), ...what });
  }

  trouble(side: Side, what: Without<Trouble>): void {
    this.insert({ kind: "trouble", key: this.name("trouble"), side, at: this.newest(), ...what });
  }

  remark(side: Side, what: Without<Remark>): void {
    this.insert({ kind: "remark", key: this.name("remark"), side, at: this.newest(), ...what });
  }

  /** Adds a handoff or an invitation to one. */
  handoff(to: Side, what: Partial<Without<Handoff>> & Pick<Handoff, "state">, name = this.name("handoff")): void {
    this.insert({
      kind: "handoff",
      key: name,
      side: to === "voice" ? "text" : "voice",
      to,
      request: "",
      expires: null,
      summary: "",
      turns: undefined,
      ms: undefined,
      at: this.newest(),
      ...what,
    });
  }

  /** Sets the outcome of an invitation. */
  settleHandoff(name: string, state: "taken" | "over" | "failed"): void {
    const line = this.find("handoff", name);
    if (line?.state === "offered" || (line?.state === "taken" && state === "failed")) {
      this.replace(line, { ...line, state });
    }
  }

  /**
   * Marks a turn's answers as cut off (without a turn: the newest answer), except the items heard to their
   * end. Returns false if there were none.
   */
  cutOff(source: Source, turn: number | undefined, whole: readonly string[] = []): boolean {
    const kept = new Set(whole.map((item) => this.named(source, item)));
    const answers = this.of("utterance").filter((line) => line.role === "assistant" && within(source, line) && !kept.has(line));
    const cut = turn === undefined ? answers.slice(-1) : answers.filter((line) => line.turn === turn);
    for (const line of cut) {
      this.replace(line, { ...line, cut: true });
    }
    return cut.length > 0;
  }

  /** Sets the heard share of an answer that was flushed at this text length. */
  heard(source: Source, item: string, share: number, length: number): void {
    const line = this.named(source, item);
    if (line !== undefined) {
      this.replace(line, { ...line, cut: true, heard: wordEnd(line.text, Math.floor(length * Math.min(1, share))) });
    }
  }

  /** The number of characters of an answer. */
  length(source: Source, item: string): number {
    return this.named(source, item)?.text.length ?? 0;
  }

  /** Removes a placeholder, because no words arrived. */
  unheard(source: Source, turn?: number): void {
    this.ordered = this.ordered.filter(
      (line) => line.kind !== "utterance" || line.state !== "hearing" || !within(source, line) || (turn !== undefined && line.turn !== turn),
    );
  }

  /** The number of running tools of a source. */
  runningTools(source: Source): number {
    return this.of("tool").filter((line) => line.state === "running" && within(source, line)).length;
  }

  /** Ends everything open of a source. */
  settle(source: Source): void {
    this.unheard(source);
    this.ordered = this.ordered.map((line) => {
      if (!within(source, line)) {
        return line;
      }
      if (line.kind === "utterance") {
        return line.state === "final" && !line.pending ? line : { ...line, state: "final", pending: false };
      }
      return line.kind === "tool" && line.state === "running" ? { ...line, state: "unfinished" } : line;
    });
  }

  private utterance(source: Source, message: TranscriptMessage): Utterance | undefined {
    const named = this.named(source, message.id);
    if (named !== undefined || message.role !== "user") {
      return named;
    }
    const own = this.of("utterance").filter((line) => within(source, line));
    return (
      own.find((line) => line.pending && line.text === message.text) ??
      own.find((line) => line.state === "hearing" && (line.turn === undefined || message.turn === undefined || line.turn === message.turn))
    );
  }

  private named(source: Source, id: string): Utterance | undefined {
    const own = key(source, id);
    return this.find("utterance", this.places.get(own) ?? own);
  }

  private called(own: string, place: string): void {
    if (own === place) {
      return;
    }
    this.places.set(own, place);
    for (const oldest of this.places.keys()) {
      if (this.places.size <= MAX_LINES) {
        break;
      }
      this.places.delete(oldest);
    }
  }

  /** Whether the user's speech was detected in a turn. */
  private spoken(source: Source, turn: number | undefined): boolean {
    return this.of("utterance").some((line) => line.role === "user" && !line.typed && line.turn === turn && within(source, line));
  }

  private of<K extends Kind>(kind: K): readonly LineOf<K>[] {
    return this.ordered.filter((line): line is LineOf<K> => line.kind === kind);
  }

  private find<K extends Kind>(kind: K, name: string): LineOf<K> | undefined {
    return this.ordered.findLast((line): line is LineOf<K> => line.key === name && line.kind === kind);
  }

  private insert(line: Line): void {
    let index = this.ordered.length;
    while (index > 0 && later(this.ordered[index - 1]!, line)) {
      index--;
    }
    const lines = this.ordered.toSpliced(index, 0, line);
    this.ordered = lines.length > MAX_LINES ? lines.slice(-MAX_LINES) : lines;
  }

  private replace(line: Line, by: Line): void {
    this.ordered = this.ordered.with(this.ordered.indexOf(line), by);
  }

  private put(known: Line | undefined, line: Line): void {
    if (known === undefined) {
      this.insert(line);
    } else {
      this.replace(known, line);
    }
  }

  private remove(line: Line): void {
    this.ordered = this.ordered.filter((other) => other !== line);
  }

  private newest(): number {
    return this.ordered.at(-1)?.at ?? 0;
  }

  private name(of: string): string {
    return `${of}-${++this.counted}`;
  }
}

function key(source: Source, id: string): string {
  return `${source.id}:${id}`;
}

function within(source: Source, line: Line): boolean {
  return sourceOf(line) === source.id;
}

function sourceOf(line: Line): string {
  return line.key.slice(0, line.key.indexOf(":"));
}

/** Orders two lines by turn if both have one, otherwise by time. */
function later(line: Line, than: Line): boolean {
  if (line.kind === "utterance" && than.kind === "utterance" && sourceOf(line) === sourceOf(than)) {
    const turns = (line.turn ?? 0) - (than.turn ?? 0);
    if (turns !== 0 && line.turn !== undefined && than.turn !== undefined) {
      return turns > 0;
    }
  }
  return line.at > than.at;
}

function said(source: Source, id: string, role: "user" | "assistant"): Omit<Utterance, "at"> {
  return {
    kind: "utterance",
    key: key(source, id),
    side: source.side,
    role,
    text: "",
    state: "open",
    turn: undefined,
    cut: false,
    heard: undefined,
    typed: false,
    pending: false,
  };
}

/** The end of the last complete word within the first count characters. */
function wordEnd(text: string, count: number): number {
  if (count >= text.length || /\s/.test(text[count] ?? "")) {
    return Math.min(count, text.length);
  }
  const space = text.lastIndexOf(" ", count);
  return Math.max(0, space);
}

import type { Line, Outcome, ToolLine, Utterance } from "./transcript.js";
import { OUTCOME, toolStatus } from "./words.js";

/** So close to the end (in pixels) the list follows what is new. */
const NEAR_END = 48;

/** The transcript's list. Elements are kept and moved, never rebuilt. */
export class Lines {
  private readonly items = new Map<Line, HTMLElement>();
  private atEnd = true;
  /** The scroller's size when it was last brought to its end. */
  private size = "";

  constructor(
    private readonly scroller: HTMLElement,
    private readonly list: HTMLElement,
  ) {
    scroller.addEventListener("scroll", () => {
      // Another size scrolls too, and says nothing about what the user wants.
      if (this.measure() === this.size) {
        this.atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
      }
    });
    // A keyboard that comes up on a phone, or a question, must not hide the newest line.
    new ResizeObserver(() => {
      this.size = this.measure();
      this.follow();
    }).observe(scroller);
  }

  show(lines: readonly Line[]): void {
    const present = new Set(lines);
    for (const [line, item] of this.items) {
      if (!present.has(line)) {
        item.remove();
        this.items.delete(line);
      }
    }
    lines.forEach((line, index) => {
      const item = this.items.get(line) ?? this.create(line);
      this.update(line, item);
      if (this.list.children[index] !== item) {
        this.list.insertBefore(item, this.list.children[index] ?? null);
      }
    });
    this.follow();
  }

  private measure(): string {
    return `${this.scroller.clientWidth}x${this.scroller.clientHeight}`;
  }

  private follow(): void {
    if (this.atEnd) {
      this.scroller.scrollTop = this.scroller.scrollHeight;
    }
  }

  private create(line: Line): HTMLElement {
    const item = document.createElement("li");
    item.className = line.kind;
    for (const name of ["who", "what", "mark"]) {
      const part = document.createElement("span");
      part.className = name;
      item.append(part);
    }
    this.items.set(line, item);
    return item;
  }

  private update(line: Line, item: HTMLElement): void {
    switch (line.kind) {
      case "utterance":
        return utterance(line, item);
      case "tool":
        return tool(line, item);
      case "outcome":
        return outcome(line, item);
    }
  }
}

function utterance(line: Utterance, item: HTMLElement): void {
  item.dataset["role"] = line.role;
  item.dataset["final"] = String(line.final);
  write(item, line.role === "user" ? "You" : "Model", line.text, line.cut ? "cut off" : "");
}

function tool(line: ToolLine, item: HTMLElement): void {
  write(item, "Tool", line.tool, toolStatus(line));
  // Written for the model: too long for the line, worth a look when something fails.
  item.title = line.error?.message ?? "";
}

function outcome(line: Outcome, item: HTMLElement): void {
  write(item, "Asked", line.preview, OUTCOME[line.outcome] ?? line.outcome);
}

function write(item: HTMLElement, ...texts: string[]): void {
  texts.forEach((text, index) => {
    const part = item.children[index]!;
    if (part.textContent !== text) {
      part.textContent = text;
    }
  });
}

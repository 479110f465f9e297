import type { Line, Question, ToolLine, Utterance } from "./transcript.js";
import { toolStatus } from "./words.js";

/** So close to the end (in pixels) the list follows what is new. */
const NEAR_END = 48;

/** The transcript's list. Elements are kept and moved, never rebuilt. */
export class Lines {
  private readonly items = new Map<Line, HTMLElement>();
  private atEnd = true;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly list: HTMLElement,
    private readonly resolve: (token: string, approved: boolean) => void,
  ) {
    scroller.addEventListener("scroll", () => {
      this.atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END;
    });
    // A keyboard that comes up on a phone must not hide the newest line.
    new ResizeObserver(() => this.follow()).observe(scroller);
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
    if (line.kind === "question") {
      item.append(this.answerButton(line, "Approve", true), this.answerButton(line, "Decline", false));
    }
    this.items.set(line, item);
    return item;
  }

  private answerButton(line: Question, label: string, approved: boolean): HTMLButtonElement {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.onclick = () => this.resolve(line.id, approved);
    return button;
  }

  private update(line: Line, item: HTMLElement): void {
    switch (line.kind) {
      case "utterance":
        return utterance(line, item);
      case "tool":
        return tool(line, item);
      case "question":
        return question(line, item);
    }
  }
}

function utterance(line: Utterance, item: HTMLElement): void {
  item.dataset["role"] = line.role;
  item.dataset["final"] = String(line.final);
  write(item, line.role === "user" ? "You" : "Model", line.text, line.cut ? "cut off" : "");
}

function tool(line: ToolLine, item: HTMLElement): void {
  write(item, "Tool", line.tool, toolStatus(line.status, line.durationMs, line.error));
}

function question(line: Question, item: HTMLElement): void {
  write(item, "Confirm", line.preview, line.outcome ?? "");
  for (const button of item.querySelectorAll("button")) {
    button.hidden = line.outcome !== null;
  }
}

function write(item: HTMLElement, ...texts: string[]): void {
  texts.forEach((text, index) => {
    const part = item.children[index]!;
    if (part.textContent !== text) {
      part.textContent = text;
    }
  });
}

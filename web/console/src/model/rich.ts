// The simple markup of text agents: paragraphs, lists, headings, code, bold and links. Other markup stays as
// text.

export type Span =
  | { kind: "text" | "bold" | "code"; text: string }
  /** Opens another page; the address is http or https. */
  | { kind: "link"; text: string; url: string };

export type Block =
  | { kind: "paragraph" | "heading"; spans: readonly Span[] }
  | { kind: "list"; ordered: boolean; items: (readonly Span[])[] }
  | { kind: "code"; text: string };

const FENCE = /^\s*```/;
const HEADING = /^#{1,6}\s+(?<text>.+)$/;
const ITEM = /^\s{0,6}(?:(?<bullet>[-*•])|(?<number>\d{1,3})[.)])\s+(?<text>.+)$/;

/** Parses a text, which may be incomplete. */
export function readRich(text: string): readonly Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    const words = paragraph.join("\n").trim();
    if (words !== "") {
      blocks.push({ kind: "paragraph", spans: readSpans(words) });
    }
    paragraph = [];
  };
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    const heading = HEADING.exec(line)?.groups?.["text"];
    const item = ITEM.exec(line)?.groups;
    if (FENCE.test(line)) {
      const end = lines.findIndex((other, at) => at > i && FENCE.test(other));
      endParagraph();
      blocks.push({ kind: "code", text: lines.slice(i + 1, end < 0 ? undefined : end).join("\n") });
      i = end < 0 ? lines.length : end;
    } else if (heading !== undefined) {
      endParagraph();
      blocks.push({ kind: "heading", spans: readSpans(heading) });
    } else if (item !== undefined) {
      endParagraph();
      addItem(blocks, item["number"] !== undefined, readSpans(item["text"]!));
    } else if (line.trim() === "") {
      endParagraph();
    } else {
      paragraph.push(line);
    }
  }
  endParagraph();
  return blocks;
}

function addItem(blocks: Block[], ordered: boolean, item: readonly Span[]): void {
  const last = blocks.at(-1);
  if (last?.kind === "list" && last.ordered === ordered) {
    last.items.push(item);
  } else {
    blocks.push({ kind: "list", ordered, items: [item] });
  }
}

// Each part has a maximum length, so that unclosed markup is not searched repeatedly.
const SPAN =
  /`(?<code>[^`\n]{1,1000})`|\*\*(?<bold>[^*\n]{1,1000})\*\*|\[(?<label>[^[\]\n]{1,300})\]\((?<target>https?:\/\/[^\s)]{1,2000})\)|(?<bare>https?:\/\/[^\s<>"]{1,2000})/g;

/** Punctuation after an address belongs to the sentence. */
const AFTER = /[.,;:!?'"”’)\]]+$/;

function readSpans(text: string): readonly Span[] {
  const spans: Span[] = [];
  const add = (span: Span): void => {
    if (span.text !== "") {
      spans.push(span);
    }
  };
  let from = 0;
  for (const match of text.matchAll(SPAN)) {
    const { code, bold, label, target, bare } = match.groups!;
    add({ kind: "text", text: text.slice(from, match.index) });
    from = match.index + match[0].length;
    if (code !== undefined) {
      add({ kind: "code", text: code });
    } else if (bold !== undefined) {
      add({ kind: "bold", text: bold });
    } else if (label !== undefined) {
      add({ kind: "link", text: label, url: target! });
    } else {
      const url = bare!.replace(AFTER, "");
      add({ kind: "link", text: url, url });
      add({ kind: "text", text: bare!.slice(url.length) });
    }
  }
  add({ kind: "text", text: text.slice(from) });
  return spans;
}

import type { JSX } from "preact";
import { readRich, type Block, type Span } from "../model/rich.js";
import "./rich.css";

/** A text with simple markup. */
export function Rich({ text }: { text: string }) {
  return (
    <>
      {readRich(text).map((block, i) => (
        <BlockView key={i} block={block} />
      ))}
    </>
  );
}

function BlockView({ block }: { block: Block }): JSX.Element {
  switch (block.kind) {
    case "paragraph":
      return (
        <p>
          <Spans spans={block.spans} />
        </p>
      );
    case "heading":
      return (
        <p class="rich-heading">
          <Spans spans={block.spans} />
        </p>
      );
    case "list": {
      const items = block.items.map((item, i) => (
        <li key={i}>
          <Spans spans={item} />
        </li>
      ));
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "code":
      return <pre tabIndex={0}>{block.text}</pre>;
  }
}

function Spans({ spans }: { spans: readonly Span[] }) {
  return (
    <>
      {spans.map((span, i) => (
        <SpanView key={i} span={span} />
      ))}
    </>
  );
}

function SpanView({ span }: { span: Span }): JSX.Element {
  switch (span.kind) {
    case "text":
      return <>{span.text}</>;
    case "bold":
      return <strong>{span.text}</strong>;
    case "code":
      return <code>{span.text}</code>;
    case "link":
      return (
        // The tooltip shows the real address.
        <a href={span.url} title={span.url} target="_blank" rel="noreferrer">
          {span.text}
        </a>
      );
  }
}

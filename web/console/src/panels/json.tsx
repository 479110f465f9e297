// JSON as a tree that can be expanded and copied.
import { useEffect, useRef, useState } from "preact/hooks";
import { EVENTS, plural } from "./words-instruments.js";
import "./json.css";

/** Levels expanded at first. */
const OPEN = 3;
/** The most entries shown of a list or an object. */
const MAX_SHOWN = 100;
const COPIED_MS = 1500;

/** A value with a heading and a copy button. */
export function Json({ title, value, level = 4 }: { title: string; value: unknown; level?: 3 | 4 }) {
  const Heading = `h${level}` as "h4";
  return (
    <section class="i-json">
      <header class="i-json-head">
        <Heading>{title}</Heading>
        <CopyButton what={title} text={() => JSON.stringify(value, null, 2) ?? ""} />
      </header>
      <div class="i-json-tree">
        <Node name={null} value={value} depth={0} />
      </div>
    </section>
  );
}

/** Copies a text and confirms it briefly. */
export function CopyButton({ what, text }: { what: string; text: () => string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    const timer = copied ? setTimeout(() => setCopied(false), COPIED_MS) : undefined;
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button type="button" class="small i-copy" aria-label={`${EVENTS.copy}: ${what}`} onClick={() => void copy(text()).then(setCopied)}>
      <span class={copied ? "i-copy-gone" : ""}>{EVENTS.copy}</span>
      <span class={copied ? "" : "i-copy-gone"} role="status">
        {copied ? EVENTS.copied : ""}
      </span>
    </button>
  );
}

/** Returns whether the text was copied. Pages loaded over plain http have no clipboard. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function Node({ name, value, depth }: { name: string | null; value: unknown; depth: number }) {
  if (typeof value !== "object" || value === null) {
    return (
      <div class="i-json-leaf">
        <Name name={name} />
        <span class={`i-json-${value === null ? "null" : typeof value}`}>{JSON.stringify(value) ?? "—"}</span>
      </div>
    );
  }
  const entries = Array.isArray(value) ? value.map((inner, i) => [String(i), inner] as const) : Object.entries(value);
  const size = Array.isArray(value) ? plural(entries.length, "entry", "entries") : plural(entries.length, "field", "fields");
  if (entries.length === 0) {
    return (
      <div class="i-json-leaf">
        <Name name={name} />
        <span class="i-json-size">{Array.isArray(value) ? "[]" : "{}"}</span>
      </div>
    );
  }
  return <Branch name={name} entries={entries} size={size} depth={depth} />;
}

function Branch({ name, entries, size, depth }: { name: string | null; entries: readonly (readonly [string, unknown])[]; size: string; depth: number }) {
  const details = useRef<HTMLDetailsElement>(null);
  const [open, setOpen] = useState(depth < OPEN);
  return (
    <details class="i-json-branch" ref={details} open={open} onToggle={() => setOpen(details.current!.open)}>
      <summary>
        <Name name={name} />
        <span class="i-json-size">{size}</span>
      </summary>
      {open && (
        <div class="i-json-inner">
          {entries.slice(0, MAX_SHOWN).map(([key, inner]) => (
            <Node key={key} name={key} value={inner} depth={depth + 1} />
          ))}
          {entries.length > MAX_SHOWN && <div class="i-json-leaf i-json-size">{`${entries.length - MAX_SHOWN} more; copy to see them`}</div>}
        </div>
      )}
    </details>
  );
}

function Name({ name }: { name: string | null }) {
  return name === null ? null : <span class="i-json-name">{name}: </span>;
}

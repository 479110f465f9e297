// Components for running and past calls.
import { useEffect } from "preact/hooks";
import type { Transcript } from "../control/calls.js";
import type { Console } from "../control/console.js";
import type { Instruments } from "../instruments.js";
import type { Line } from "../model/lines.js";
import { asText, asVtt } from "../model/written.js";
import { useFollow } from "../ui/follow.js";
import { CallAudio } from "./audio.js";
import { save } from "./bits.js";
import { LineView } from "./lines.js";
import { CALLS, FORMATS } from "./words-calls.js";

/** How often a visible page reloads. */
const LOOK_EVERY_MS = 2000;

interface WrittenProps {
  console: Console;
  instruments: Instruments;
  /** The call's or conversation's name, also used for files. */
  name: string;
  lines: readonly Line[];
  transcript: Transcript;
}

/** The transcript with buttons to save it, and the audio of this page's calls. */
export function Written({ console, instruments, name, lines, transcript }: WrittenProps) {
  const { ref } = useFollow<HTMLDivElement>(true);
  return (
    <>
      <div ref={ref} class="calls-log" role="group" aria-label={CALLS.transcript} tabIndex={0}>
        <ol class="lines">
          {lines.map((line) => (
            <LineView key={line.key} line={line} console={console} />
          ))}
        </ol>
      </div>
      <SaveAs name={name} lines={lines} json={transcript.json} />
      <CallAudio {...{ instruments, name }} id={name} />
    </>
  );
}

/** Buttons that save the transcript. */
function SaveAs({ name, lines, json }: { name: string; lines: readonly Line[]; json: string }) {
  const files = [
    { format: "text", file: `${name}.txt`, type: "text/plain", content: () => asText(lines) },
    { format: "vtt", file: `${name}.vtt`, type: "text/vtt", content: () => asVtt(lines) },
    { format: "json", file: `${name}.json`, type: "application/json", content: () => json },
  ] as const;
  return (
    <p class="calls-save" role="group" aria-label={CALLS.download}>
      <span>{CALLS.download}</span>
      {files.map(({ format, file, type, content }) => (
        <button key={format} type="button" class="small" onClick={() => save(file, content(), type)}>
          <span aria-hidden="true">↓ </span>
          {FORMATS[format]}
        </button>
      ))}
    </p>
  );
}

/** Calls `look` at once and repeatedly while the page is visible. still: the component is still mounted. */
export function useLooking(look: (still: () => boolean) => Promise<void>): void {
  useEffect(() => {
    let on = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async (): Promise<void> => {
      if (!document.hidden) {
        await look(() => on);
      }
      if (on) {
        timer = setTimeout(() => void again(), LOOK_EVERY_MS);
      }
    };
    void again();
    return () => {
      on = false;
      clearTimeout(timer);
    };
  }, []);
}

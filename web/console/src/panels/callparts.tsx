// What the page of calls shows of a call, running or past.
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

/** How often the gateway is asked while somebody looks. */
const LOOK_EVERY_MS = 2000;

interface WrittenProps {
  console: Console;
  instruments: Instruments;
  /** Of the call or the conversation: the files get it too. */
  name: string;
  lines: readonly Line[];
  transcript: Transcript;
}

/** What was said, and ways to save it, with the sound of a call of this page. */
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

/** Buttons that save what was said. */
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

/** Looks at once and then again and again, while the page is seen. still: nobody has gone on to something else. */
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

// The audio of a turn, to be saved as a WAV file.
import type { Instruments } from "../instruments.js";
import { fileName, type Which } from "../model/recording.js";
import type { Turn } from "../model/turns.js";
import { save } from "./bits.js";
import { AUDIO, LATENCY, seconds, TURN } from "./words-instruments.js";

/** Buttons for what is recorded of a turn. */
export function TurnAudio({ instruments, turn: { session, turn } }: { instruments: Instruments; turn: Turn }) {
  const recorded = instruments.recording.of(session, turn);
  if (recorded === null) {
    return <p class="i-quiet">{LATENCY.nothing}</p>;
  }
  const download = (which: Which): void => {
    const file = instruments.recording.wav(session, turn, which, performance.now());
    if (file !== null) {
      save(fileName(session, turn, which), file, "audio/wav");
    }
  };
  return (
    <div class="i-turn-audio" role="group" aria-label={TURN.audio(turn)}>
      {(["both", "user", "model"] as const).map((which) => {
        const ms = which === "user" ? recorded.userMs : which === "model" ? recorded.modelMs : undefined;
        return (
          <button key={which} type="button" class="small" title={AUDIO[which].title} disabled={ms === 0} onClick={() => download(which)}>
            <span aria-hidden="true">↓ </span>
            {AUDIO[which].name}
            {ms !== undefined && <span class="i-quiet"> {seconds(ms)}</span>}
          </button>
        );
      })}
    </div>
  );
}

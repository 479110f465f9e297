// Saves the audio of a turn or a call as WAV files.
import { useState } from "preact/hooks";
import type { Instruments } from "../instruments.js";
import { fileName, type Which } from "../model/recording.js";
import type { Turn } from "../model/turns.js";
import { save } from "./bits.js";
import { AUDIO, LATENCY, seconds, TURN, WHOLE_CALL } from "./words-instruments.js";

/** Buttons for the recorded audio of a turn. */
export function TurnAudio({ instruments, turn: { session, turn } }: { instruments: Instruments; turn: Turn }) {
  void instruments.changed.value; // the recording is mutable
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

/**
 * A button that saves the audio of a call, found by its session's or conversation's id; without an id, the
 * newest call. Renders nothing if the page has no audio of it.
 */
export function CallAudio({ instruments, id, name }: { instruments: Instruments; id?: string; name?: string }) {
  void instruments.changed.value;
  const [making, setMaking] = useState(false);
  const facts = id === undefined ? instruments.call.newest : instruments.call.of(id);
  if (facts === null) {
    return null;
  }
  const download = async (): Promise<void> => {
    setMaking(true);
    const file = await instruments.call.wav(performance.now()).finally(() => setMaking(false));
    if (file !== null) {
      save(`${name ?? "voicegw-call"}.wav`, file, "audio/wav");
    }
  };
  return (
    <div class="i-call-audio" role="group" aria-label={WHOLE_CALL.title}>
      <button type="button" class="small" aria-disabled={making} onClick={() => void (making ? undefined : download())}>
        <span aria-hidden="true">↓ </span>
        {WHOLE_CALL.save}
      </button>
      <span role="status">{making ? WHOLE_CALL.making : ""}</span>
      <span class="i-quiet">{[WHOLE_CALL.means, facts.continued ? WHOLE_CALL.continued : "", facts.full ? WHOLE_CALL.full : ""].join(" ").trim()}</span>
    </div>
  );
}

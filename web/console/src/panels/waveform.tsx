// Both sides as a scrolling waveform that can be paused to look back.
import "./instruments.css";
import "./waveform.css";
import { useEffect, useRef } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import type { Instruments } from "../instruments.js";
import type { Sound } from "../model/sound.js";
import { KEPT_MS } from "../model/wave.js";
import { Painter, PAST_MS, SHOWN_MS, timeOf, type Look } from "./painter.js";
import { ago, WAVE, waveSentence } from "./words-instruments.js";

/** A button press looks this much further back. */
const STEP_MS = 5000;
const LIVE: Look = { held: "no", now: 0, behind: 0 };

export function Waveform({ instruments }: { instruments: Instruments }) {
  const { sound } = instruments;
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useSignal<Look>(LIVE);
  const held = useComputed(() => look.value.held);
  const painter = useRef<Painter>(undefined);

  useEffect(() => {
    painter.current = new Painter(canvas.current!, instruments, () => look.peek());
    const off = look.subscribe(() => painter.current!.touch());
    const offChanged = instruments.changed.subscribe(() => painter.current!.touch());
    return () => {
      off();
      offChanged();
      painter.current!.close();
    };
  }, [instruments, look]);

  const hold = (kind: "pointer" | "yes", behind = look.value.behind): void => {
    const now = look.value.held === "no" ? timeOf(sound) : look.value.now;
    look.value = { held: kind, now, behind: Math.min(Math.max(0, behind), furthest(sound, now)) };
  };
  const release = (): void => void (look.value = LIVE);
  const drag = useRef<{ x: number; behind: number } | null>(null);
  const moved = (event: PointerEvent): void => {
    if (drag.current !== null) {
      const perPixel = SHOWN_MS / canvas.current!.clientWidth;
      hold("yes", drag.current.behind + (event.clientX - drag.current.x) * perPixel);
    } else if (event.pointerType === "mouse" && held.value === "no" && (event.movementX !== 0 || event.movementY !== 0)) {
      // Only a moving pointer pauses; the canvas may appear under a resting one, as after a press of "Talk".
      hold("pointer");
    }
  };
  void instruments.changed.value;
  const none = sound.session === 0;
  return (
    <section class="i-wave" aria-label={WAVE.label}>
      <div class="i-wave-head">
        <ul class="i-legend" aria-hidden="true">
          <li>
            <span class="i-key i-key-user" />
            {WAVE.user}
          </li>
          <li>
            <span class="i-key i-key-model" />
            {WAVE.model}
          </li>
          <li>
            <span class="i-key i-key-waiting" />
            {WAVE.waiting}
          </li>
          <li>
            <span class="i-key i-key-lost" />
            {WAVE.lost}
          </li>
        </ul>
        <div class="i-wave-buttons">
          <button type="button" class="small" aria-label={WAVE.earlier} title={WAVE.earlier} disabled={none} onClick={() => hold("yes", look.value.behind + STEP_MS)}>
            <span aria-hidden="true">‹</span>
          </button>
          <button type="button" class="small" aria-label={WAVE.later} title={WAVE.later} disabled={none} aria-disabled={look.value.behind === 0} onClick={() => look.value.behind > 0 && hold("yes", look.value.behind - STEP_MS)}>
            <span aria-hidden="true">›</span>
          </button>
          <button type="button" class="small i-wave-hold" disabled={none} onClick={() => (held.value === "yes" ? release() : hold("yes"))}>
            {held.value === "yes" ? WAVE.live : WAVE.pause}
          </button>
        </div>
      </div>
      <div class="i-wave-strip">
        <canvas
          ref={canvas}
          role="img"
          aria-label={WAVE.label}
          aria-describedby="i-wave-text"
          onPointerLeave={() => held.value === "pointer" && release()}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { x: event.clientX, behind: look.value.behind };
          }}
          onPointerMove={moved}
          onPointerUp={() => (drag.current = null)}
          onPointerCancel={() => (drag.current = null)}
        />
        {held.value !== "no" && <p class="i-wave-ago">{ago(look.value.behind)}</p>}
        {none && <p class="i-wave-empty">{WAVE.empty}</p>}
      </div>
      <p class="i-hidden-text" id="i-wave-text">
        {sentence(sound)}
      </p>
    </section>
  );
}

/** The view reaches back to the session's start, at most two minutes. */
function furthest(sound: Sound, now: number): number {
  return Math.max(0, Math.min(KEPT_MS, now - sound.openedAt) - PAST_MS);
}

function sentence(sound: Sound): string {
  const speech = sound.speeches.findLast(({ session }) => session === sound.session);
  const item = sound.items.at(-1);
  const spans = sound.spans(sound.session, timeOf(sound)).filter((span) => span.item === item);
  const sum = (kind: string): number => spans.filter((span) => span.kind === kind).reduce((total, { from, to }) => total + to - from, 0);
  const lost = item?.heardMs === undefined ? 0 : Math.max(0, item.receivedMs - item.heardMs);
  return waveSentence(
    { speaking: speech !== undefined && speech.to === undefined, spokeMs: speech?.to === undefined ? undefined : speech.to - speech.from },
    item === undefined || item.session !== sound.session ? undefined : { heardMs: sum("heard"), waitingMs: sum("waiting"), lostMs: lost < 60 ? 0 : lost },
  );
}

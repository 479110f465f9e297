import { useEffect, useRef } from "preact/hooks";
import type { Console } from "../control/console.js";
import { activity, isMuted, isOn, running, stoppable, type VoiceState } from "../model/voice.js";
import { chosen } from "../model/providers.js";
import { HangUp, Microphone, MicrophoneOff, Send, Stop } from "../ui/icons.js";
import { Meter } from "../ui/meter.js";
import { useNow } from "../ui/now.js";
import * as words from "../words.js";
import "./call.css";

/** The call's status and controls. */
export function CallBar({ console, onSetup }: { console: Console; onSetup: () => void }) {
  const state = console.voice.value;
  const on = running(state);
  const bar = useRef<HTMLElement>(null);
  const wasOn = useRef(false);
  useEffect(() => {
    if (wasOn.current !== on) {
      wasOn.current = on;
      keepFocus(bar.current, on);
    }
  }, [on]);
  return (
    <section class="dock call" data-side="voice" ref={bar} aria-label={words.CALL}>
      <Status state={state} />
      <div class="meters">
        <Meter levels={console.levels} side="user" muted={isMuted(state.microphone)} />
        <Meter levels={console.levels} side="model" />
      </div>
      {on ? <Controls console={console} state={state} /> : <Begin console={console} onSetup={onSetup} again={state.phase !== "none"} />}
    </section>
  );
}

/** The pressed button has been replaced. Focus Mute, not Hang up, so that a second press does no harm. */
function keepFocus(bar: HTMLElement | null, on: boolean): void {
  const lost = document.activeElement === document.body || document.activeElement === null;
  if (lost || bar?.contains(document.activeElement) === true) {
    bar?.querySelector<HTMLButtonElement>(on ? "#mute" : "#again")?.focus();
  }
}

function Status({ state }: { state: VoiceState }) {
  const now = activity(state);
  const counting = useNow(250, state.retry !== null);
  const { notice } = state;
  // Without a microphone nothing else matters.
  const blocked = notice !== null && state.about === "microphone" && now === "typing" && state.microphone === "off";
  const { title, advice } = blocked ? notice : words.ACTIVITY[now];
  const heading = title.replace(/\.$/, "");
  // The title shows the activity in a background tab too.
  const about = running(state) ? (isMuted(state.microphone) ? words.ACTIVITY.muted.title : heading) : "";
  useEffect(() => {
    document.title = words.pageTitle(about);
    return () => void (document.title = words.pageTitle(""));
  }, [about]);
  const hint = (): string => {
    if (state.retry !== null) {
      return `${words.nextTry(state.retry, counting)} ${words.whatIsSaid(state, counting)}`.trim();
    }
    if (now === "hearing" && state.pressed) {
      return words.LET_GO;
    }
    return now === "ended" ? words.endedAdvice(state.reason) : advice;
  };
  return (
    <div class="status" data-activity={now}>
      <p class="status-title">
        <span class="lamp" aria-hidden="true" />
        <strong>{heading}</strong>
        {isMuted(state.microphone) && now !== state.microphone && <span class="muted">{words.ACTIVITY.muted.title}</span>}
        <span class="latency faint">{words.answeredIn(state.answeredInMs)}</span>
      </p>
      <p class="status-hint" data-trouble={notice !== null}>
        {notice === null ? hint() : blocked ? advice : `${notice.title} ${notice.advice}`}
      </p>
    </div>
  );
}

/** Before and after a call. */
function Begin({ console, onSetup, again }: { console: Console; onSetup: () => void; again: boolean }) {
  const settings = console.settings.value;
  const provider = chosen(console.offer.value, settings.provider);
  const facts = [provider?.name, settings.voice || provider?.voice, settings.turns === "pushToTalk" ? words.PUSH_TO_TALK : ""];
  return (
    <div class="begin">
      <button id="again" type="button" class="primary big" onClick={() => console.talk()}>
        <Microphone />
        {again ? words.START_AGAIN : words.EMPTY.start}
      </button>
      <p class="begin-more">
        <button type="button" class="link" onClick={() => console.talk(false)}>
          {words.WITHOUT_MICROPHONE}
        </button>
        <button type="button" class="link" onClick={onSetup}>
          {[...facts.filter((fact) => fact), words.CHANGE].join(" · ")}
        </button>
      </p>
    </div>
  );
}

function Controls({ console, state }: { console: Console; state: VoiceState }) {
  return (
    <>
      <div class="buttons">
        <MicrophoneButton console={console} state={state} />
        {state.phase === "reconnecting" ? (
          <button type="button" onClick={() => console.retryNow()}>
            {words.TRY_NOW}
          </button>
        ) : (
          <button id="stop" type="button" aria-keyshortcuts="Escape" disabled={!stoppable(state)} onClick={() => console.stop()}>
            <Stop />
            {words.STOP}
          </button>
        )}
        <button id="hangup" type="button" class="leave" disabled={state.phase === "ending"} onClick={() => console.hangUp()}>
          <HangUp />
          {words.HANG_UP}
        </button>
      </div>
      {state.pushToTalk && <TalkButton console={console} state={state} />}
      <TypeToVoice console={console} />
    </>
  );
}

function MicrophoneButton({ console, state }: { console: Console; state: VoiceState }) {
  const { microphone } = state;
  const label = microphone === "muted" ? words.UNMUTE : isOn(microphone) ? words.MUTE : words.USE_MICROPHONE;
  return (
    <button id="mute" type="button" data-muted={isMuted(microphone)} aria-disabled={microphone === "asking"} aria-keyshortcuts="M" onClick={() => console.toggleMicrophone()}>
      {microphone === "live" ? <Microphone /> : <MicrophoneOff />}
      {label}
    </button>
  );
}

/** Held while the user speaks: with the pointer, Space or Enter. */
function TalkButton({ console, state }: { console: Console; state: VoiceState }) {
  const key = (active: boolean) => (event: KeyboardEvent) => {
    if ((event.key === " " || event.key === "Enter") && !event.repeat) {
      event.preventDefault();
      console.press(active);
    }
  };
  const release = (): void => console.press(false);
  return (
    <button
      id="talk"
      type="button"
      class="primary hold"
      disabled={state.phase !== "open" || state.microphone !== "live"}
      aria-pressed={state.pressed}
      onPointerDown={(event) => {
        // The pointer may leave the button while it is held.
        event.currentTarget.setPointerCapture(event.pointerId);
        console.press(true);
      }}
      onPointerUp={release}
      onPointerCancel={release}
      onKeyDown={key(true)}
      onKeyUp={key(false)}
      onBlur={release}
      onContextMenu={(event) => event.preventDefault()}
    >
      <Microphone />
      {words.HOLD}
    </button>
  );
}

function TypeToVoice({ console }: { console: Console }) {
  const field = useRef<HTMLInputElement>(null);
  const send = (event: Event): void => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    if (field.current !== null && text !== "") {
      field.current.value = "";
      console.type(text);
    }
  };
  return (
    <form class="say" autocomplete="off" onSubmit={send}>
      <label class="unseen" for="say">
        {words.TYPE}
      </label>
      <input id="say" ref={field} type="text" maxLength={8000} placeholder={words.TYPE_HERE} enterkeyhint="send" />
      <button type="submit" class="icon-only" aria-label={words.SEND_TO_VOICE}>
        <Send />
      </button>
    </form>
  );
}

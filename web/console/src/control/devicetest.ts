// Tests the microphone and the speaker before a call, within the page.
import { askMicrophone, type VoiceError } from "@voicegw/client";
import { signal } from "@preact/signals";
import { Hearing, rms, type Heard } from "../model/hearing.js";
import type { Settings } from "../model/settings.js";
import { Levels } from "./levels.js";

/** asking: the browser asks the user. failed: there is no microphone; `problem` has the reason. */
export type MicrophoneTest = "off" | "asking" | Heard | "failed";
export type SpeakerTest = "off" | "playing" | "played" | "failed";

/** Interval between two levels. */
const EVERY_MS = 40;
/** A forgotten test ends after this time. */
const LONGEST_MS = 60_000;
const TONE_HZ = 440;
const TONE_MS = 800;
/** The tone's amplitude at full volume. */
const TONE_GAIN = 0.25;

export class DeviceTest {
  readonly microphone = signal<MicrophoneTest>("off");
  readonly problem = signal<VoiceError | null>(null);
  readonly speaker = signal<SpeakerTest>("off");
  readonly levels = new Levels();
  /** Rises with each test, so that results of earlier ones are ignored. */
  private tests = 0;
  private release: () => void = () => undefined;

  /** Listens to the chosen microphone until stop, at most a minute. Call it from a click or key press. */
  async listen(settings: Settings): Promise<void> {
    this.stop();
    const test = this.tests;
    this.microphone.value = "asking";
    try {
      const { microphone, echoCancellation, noiseSuppression } = settings;
      const stream = await askMicrophone({ echoCancellation, noiseSuppression }, microphone === "" ? undefined : microphone);
      if (test !== this.tests) {
        end(stream);
        return;
      }
      this.hear(stream);
    } catch (error) {
      if (test === this.tests) {
        this.microphone.value = "failed";
        this.problem.value = error as VoiceError;
      }
    }
  }

  /** Releases the microphone. */
  stop(): void {
    this.tests++;
    this.release();
    this.release = () => undefined;
    this.microphone.value = "off";
    this.problem.value = null;
    this.levels.silence();
  }

  /** Plays a tone on the chosen speaker at the model's volume. Call it from a click or key press. */
  async play({ speaker, volume }: Settings): Promise<void> {
    if (this.speaker.value === "playing") {
      return;
    }
    this.speaker.value = "playing";
    let context: AudioContext | undefined;
    try {
      context = new AudioContext();
      const out = context.createMediaStreamDestination();
      const gain = new GainNode(context, { gain: 0 });
      const tone = new OscillatorNode(context, { frequency: TONE_HZ });
      tone.connect(gain).connect(out);
      const element = new Audio();
      element.srcObject = out.stream;
      if (speaker !== "" && "setSinkId" in element) {
        await element.setSinkId(speaker);
      }
      await Promise.all([context.resume(), element.play()]);
      const now = context.currentTime;
      // A fade-in and fade-out avoid clicks.
      gain.gain.linearRampToValueAtTime(TONE_GAIN * volume, now + 0.05);
      gain.gain.setValueAtTime(TONE_GAIN * volume, now + TONE_MS / 1000 - 0.05);
      gain.gain.linearRampToValueAtTime(0, now + TONE_MS / 1000);
      const over = new Promise((ended) => tone.addEventListener("ended", ended, { once: true }));
      tone.start(now);
      tone.stop(now + TONE_MS / 1000);
      await over;
      this.speaker.value = "played";
    } catch {
      this.speaker.value = "failed";
    } finally {
      void context?.close();
    }
  }

  private hear(stream: MediaStream): void {
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 2048 });
    context.createMediaStreamSource(stream).connect(analyser);
    void context.resume();
    const samples = new Float32Array(analyser.fftSize);
    const hearing = new Hearing();
    this.microphone.value = "none";
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const level = rms(samples);
      this.levels.tell({ side: "user", level });
      this.microphone.value = hearing.take(level, EVERY_MS);
    }, EVERY_MS);
    const late = setTimeout(() => this.stop(), LONGEST_MS);
    this.release = () => {
      clearInterval(timer);
      clearTimeout(late);
      end(stream);
      void context.close();
    };
  }
}

function end(stream: MediaStream): void {
  for (const track of stream.getTracks()) {
    track.stop();
  }
}

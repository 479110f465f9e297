import { VoiceSession, type ConnectOptions, type LocalEvents, type MicrophoneOptions, type VoiceError } from "@voicegw/client";
import { NOTICED, type Noticed, type Told, type UnknownMessage } from "../model/feed.js";
import { DEFAULTS, type Settings } from "../model/settings.js";
import { TurnCount } from "../model/turncount.js";
import type { Levels } from "./levels.js";

export interface CallHandlers {
  happened(what: Told): void;
  /** The user's devices, or their names, have changed. */
  devices(): void;
  /** The operator's key; undefined without permission to inspect. */
  key(): string | undefined;
}

/** How to start a call. */
export interface Start {
  conversation: string;
  microphone: boolean;
  /** Start with the microphone on but muted. */
  muted?: boolean;
  /** The ticket of an invitation, which already contains the first question. */
  ticket?: string;
  /** Resume the call that was open when the page reloaded; do not start a new one. */
  resumes?: boolean;
  /** The number of turns in the call's earlier sessions. */
  turnsBefore?: number;
}

/** The session of the current call and the user's actions in it. One at a time. */
export class Call {
  private current: VoiceSession | null = null;
  private microphone: MicrophoneOptions = {};
  private chosen: Settings = DEFAULTS;
  private turns = new TurnCount();

  constructor(
    private readonly levels: Levels,
    private readonly handlers: CallHandlers,
  ) {}

  /** The running session, or null. */
  get session(): VoiceSession | null {
    return this.current;
  }

  /** The settings of the newest call. */
  get settings(): Settings {
    return this.chosen;
  }

  /** The number of turns in the call's earlier sessions. */
  get turnsBefore(): number {
    return this.turns.before;
  }

  /**
   * Starts a call unless one is running. Call it from a click or key press, because browsers start audio only
   * then.
   */
  start(start: Start, settings: Settings): void {
    this.microphone = {
      ...(settings.microphone === "" ? {} : { deviceId: settings.microphone }),
      echoCancellation: settings.echoCancellation,
      noiseSuppression: settings.noiseSuppression,
    };
    const session = new VoiceSession(connectOptions(start, settings, this.microphone, () => this.handlers.key()));
    session.speaker.volume = settings.volume;
    this.current = session;
    this.chosen = settings;
    this.turns = new TurnCount(start.turnsBefore);
    if (start.muted === true) {
      session.microphone.mute(true);
    }
    this.listen(session, settings);
    // The event "disconnected" reports the error.
    session.open().catch(() => undefined);
  }

  /** Sends a typed turn. Returns the id of its transcript; undefined without a call. */
  say(text: string): string | undefined {
    return this.current?.sendText(text);
  }

  stop(): void {
    this.current?.interrupt();
  }

  resolve(token: string, approved: boolean): void {
    if (approved) {
      this.current?.approve(token);
    } else {
      this.current?.decline(token);
    }
  }

  /** Push-to-talk. */
  press(active: boolean): void {
    this.current?.microphone.press(active);
  }

  /** Turns the microphone on, or mutes or unmutes it. */
  async toggleMicrophone(): Promise<void> {
    const microphone = this.current?.microphone;
    switch (microphone?.state) {
      case "live":
      case "silenced":
        microphone.mute(true);
        return;
      case "muted":
        microphone.mute(false);
        return;
      case "off":
      case "lost":
        return this.attempt(() => microphone.start());
      default:
    }
  }

  /** Applies another microphone or other processing at once. */
  async useMicrophone(settings: Settings): Promise<void> {
    this.microphone.echoCancellation = settings.echoCancellation;
    this.microphone.noiseSuppression = settings.noiseSuppression;
    const microphone = this.current?.microphone;
    if (microphone !== undefined) {
      await this.attempt(() => microphone.use(settings.microphone === "" ? undefined : settings.microphone));
    }
  }

  async useSpeaker(id: string): Promise<void> {
    const speaker = this.current?.speaker;
    if (speaker !== undefined) {
      await this.attempt(() => speaker.use(id === "" ? undefined : id));
    }
  }

  /** Sets the volume, 0 to 1, at once. */
  setVolume(volume: number): void {
    if (this.current !== null) {
      this.current.speaker.volume = volume;
    }
  }

  /** Starts the next attempt to reconnect now. */
  retryNow(): void {
    this.current?.retry();
  }

  hangUp(): void {
    void this.current?.disconnect();
  }

  private async attempt(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.handlers.happened({ kind: "noticed", side: "voice", name: "error", event: error as VoiceError });
    }
  }

  private listen(session: VoiceSession, settings: Settings): void {
    const { happened, devices } = this.handlers;
    let first = true;
    session.on("message", (wire) => {
      if (wire.type === "session.started" && !first && wire.resumed !== true) {
        this.turns.renew();
      }
      const message = this.turns.count(wire);
      happened({ kind: "received", side: "voice", message, ...(message === wire ? {} : { wire }) });
      // A resumed session is not new, except for a page that has just been loaded.
      if (message.type === "session.started" && (first || message.resumed !== true)) {
        first = false;
        const outputRate = session.info?.output_rate ?? settings.outputRate;
        happened({ kind: "opened", side: "voice", inputRate: session.info?.input_rate ?? settings.inputRate, outputRate });
      }
    });
    session.on("sent", (message) => happened({ kind: "sent", side: "voice", message: message as UnknownMessage }));
    for (const name of NOTICED) {
      session.on(name, (event) => {
        if (name === "error" && session.state === "disconnected") {
          return; // "disconnected" reports it too.
        }
        if (name === "disconnected") {
          this.current = null;
          this.levels.silence();
        }
        const counted = name === "answered" || name === "latency" ? this.turns.count(event as LocalEvents["latency"]) : event;
        happened({ kind: "noticed", side: "voice", ...({ name, event: counted } as Noticed) });
      });
    }
    session.on("uplink", ({ pcm, clockMs }) => happened({ kind: "uplink", side: "voice", pcm, rate: settings.inputRate, clockMs }));
    session.on("downlink", ({ item, pcm }) => {
      happened({ kind: "downlink", side: "voice", item, pcm, rate: session.info?.output_rate ?? settings.outputRate });
    });
    session.on("level", (level) => this.levels.tell(level));
    session.on("microphone", () => devices());
    session.on("devices", () => devices());
  }
}

function connectOptions(start: Start, settings: Settings, microphone: MicrophoneOptions, key: () => string | undefined): ConnectOptions {
  const { provider, agent, voice, pendingRequest, speaker } = settings;
  return {
    conversationId: start.conversation,
    microphone: start.microphone ? microphone : false,
    inputRate: settings.inputRate,
    outputRate: settings.outputRate,
    turnDetection: settings.turns === "pushToTalk" ? "client" : "server",
    inspect: true,
    key,
    client: { name: "voicegw-console", version: CONSOLE_VERSION },
    ...(start.ticket === undefined ? {} : { ticket: start.ticket }),
    ...(speaker === "" ? {} : { speakerId: speaker }),
    ...(start.resumes === true
      ? { resume: "only" as const }
      : {
          ...(provider === "" ? {} : { provider }),
          ...(agent === "" ? {} : { agent }),
          ...(voice === "" ? {} : { voice }),
          ...(pendingRequest === "" || start.ticket !== undefined ? {} : { pendingRequest }),
        }),
  };
}

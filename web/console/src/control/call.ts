import { VoiceSession, type ConnectOptions, type LocalEvents, type MicrophoneOptions, type VoiceError } from "@voicegw/client";
import { NOTICED, type Noticed, type Told, type UnknownMessage } from "../model/feed.js";
import { DEFAULTS, type Settings } from "../model/settings.js";
import { TurnCount } from "../model/turncount.js";
import type { Levels } from "./levels.js";

/** What a call needs of the console. */
export interface CallHandlers {
  happened(what: Told): void;
  /** The user's devices have come, gone, or got names. */
  devices(): void;
  /** What opens the inside of a session; undefined where the page has nothing. */
  key(): string | undefined;
}

/** How a call is begun. */
export interface Start {
  conversation: string;
  microphone: boolean;
  /** The microphone is on, and hears nothing until the user wants it. */
  muted?: boolean;
  /** Of an invitation; it says by itself what is answered first. */
  ticket?: string;
  /** The call goes on in which the page was loaded again, or no call goes on. */
  goesOn?: boolean;
  /** How many turns the earlier sessions of that call had. */
  turnsBefore?: number;
}

/** The session of a call, and what the user does in it. One at a time. */
export class Call {
  private current: VoiceSession | null = null;
  private microphone: MicrophoneOptions = {};
  private chosen: Settings = DEFAULTS;
  private turns = new TurnCount();

  constructor(
    private readonly levels: Levels,
    private readonly handlers: CallHandlers,
  ) {}

  /** The running one, or null. */
  get session(): VoiceSession | null {
    return this.current;
  }

  /** What the newest call was begun with. */
  get settings(): Settings {
    return this.chosen;
  }

  /** How many turns the sessions of the call before its newest one had. */
  get turnsBefore(): number {
    return this.turns.before;
  }

  /** Begins a call, while none runs. From a click or key press: browsers start audio only then. */
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
    // What went wrong comes as the event "disconnected", too.
    session.open().catch(() => undefined);
  }

  /** A typed turn. Returns the id of its transcript; undefined without a call. */
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

  /** Turns the microphone on, or mutes and unmutes it. */
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

  /** Another microphone, or other processing of what it hears, at once. */
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

  /** From 0 to 1, at once. */
  setVolume(volume: number): void {
    if (this.current !== null) {
      this.current.speaker.volume = volume;
    }
  }

  /** The next try to reconnect is made now. */
  retryNow(): void {
    this.current?.retry();
  }

  hangUp(): void {
    void this.current?.disconnect();
  }

  private async attempt(deed: () => Promise<unknown>): Promise<void> {
    try {
      await deed();
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
      // A session that was taken up again goes on, but for a page that knows nothing of it.
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
          return; // It comes with "disconnected", too.
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
    ...(start.goesOn === true
      ? { resume: "only" as const }
      : {
          ...(provider === "" ? {} : { provider }),
          ...(agent === "" ? {} : { agent }),
          ...(voice === "" ? {} : { voice }),
          ...(pendingRequest === "" || start.ticket !== undefined ? {} : { pendingRequest }),
        }),
  };
}

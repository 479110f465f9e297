import { keptSession, listMicrophones, listSpeakers, type Device, type ServerMessage, type Stats, type VoiceError, type VoiceSession } from "@voicegw/client";
import { batch, signal } from "@preact/signals";
import { Conversation } from "../model/conversation.js";
import type { Happening, LastingWatcher, Told } from "../model/feed.js";
import type { Line } from "../model/lines.js";
import type { Offer } from "../model/providers.js";
import type { Question } from "../model/questions.js";
import type { Settings } from "../model/settings.js";
import { READY, type TextState } from "../model/text.js";
import { running, SILENT, stoppable, type VoiceState } from "../model/voice.js";
import * as words from "../words.js";
import { Access } from "./access.js";
import { Call } from "./call.js";
import { askHistory, askOffer, askReady } from "./gateway.js";
import { Invitations } from "./invitations.js";
import { forgetConversation, keepCall, keepConversation, keepInstruments, keepSettings, keptConversation, keptSettings, newConversation, takeCall, takeInstruments } from "./keeping.js";
import { Levels } from "./levels.js";
import { TextAgent } from "./textagent.js";

/** How often a visible page asks for the gateway's status. */
const READY_EVERY_MS = 20_000;

/** A question of the text agent counts as over this long after its end, because clocks differ. */
const LAST_WORD_MS = 5000;

/** The outcome of a question by the error code of its answer. After other errors it is still open. */
const OUTCOME_OF: Readonly<Record<string, string>> = {
  confirmation_used: "answered",
  confirmation_expired: "expired",
  confirmation_unknown: "unanswered",
};

/** The gateway's last known status. */
export type GatewayState = keyof typeof words.GATEWAY;

export interface Devices {
  readonly microphones: readonly Device[];
  readonly speakers: readonly Device[];
}

/**
 * The state and the actions of the page. Events go through `happened` to the conversation and the
 * instruments. Panels read the signals, which only this class writes, and call the methods.
 */
export class Console {
  readonly lines = signal<readonly Line[]>([]);
  readonly questions = signal<readonly Question[]>([]);
  readonly voice = signal<VoiceState>(SILENT);
  readonly text = signal<TextState>(READY);
  readonly settings = signal<Settings>(keptSettings());
  readonly offer = signal<Offer | null>(null);
  readonly gateway = signal<GatewayState>("unknown");
  readonly devices = signal<Devices>({ microphones: [], speakers: [] });
  /** The running voice session, for the instruments; null between calls. */
  readonly session = signal<VoiceSession | null>(null);
  readonly levels = new Levels();
  private readonly conversation = new Conversation();
  private readonly call: Call = new Call(this.levels, { happened: (what) => this.happened(what), devices: () => void this.lookForDevices(), key: () => this.access.key });
  private readonly agent = new TextAgent(
    {
      happened: (what) => this.happened(what),
      asking: (message) => this.change(() => this.conversation.asking(message)),
      answered: (error, token) => this.change(() => this.answered(error, token)),
    },
    (...args) => this.access.request(...args),
  );
  private readonly invitations = new Invitations((name) => this.change(() => this.conversation.missed(name)));
  /** The conversation's id, once it has content. */
  private id = keptConversation();
  /** The previous page's conversation. Input before open has finished starts another one. */
  private readonly before = this.id;

  /** instruments receives every event. */
  constructor(
    private readonly instruments: LastingWatcher,
    /** The permission to inspect. */
    readonly access: Access = new Access(),
  ) {}

  /** Loads the gateway's status, the devices, and the conversation from before a reload. */
  async open(): Promise<void> {
    navigator.mediaDevices?.addEventListener("devicechange", () => void this.lookForDevices());
    document.addEventListener("visibilitychange", () => void this.lookForGateway());
    setInterval(() => void this.lookForGateway(), READY_EVERY_MS);
    addEventListener("pagehide", () => this.leave());
    // The browser may restore the page from its back/forward cache.
    addEventListener("pageshow", ({ persisted }) => void (persisted && this.goOn()));
    const session = this.goOn();
    await Promise.all([this.lookForGateway(), this.lookForDevices(), this.recall(session === undefined ? this.before : this.id, session)]);
  }

  /** Sends a message to the text agent. Returns false while it answers another one. */
  write(message: string): boolean {
    return this.agent.say(this.conversationId(), message);
  }

  /** Starts a call. Call it from a click or key press, because browsers start audio only then. */
  talk(microphone = true): void {
    this.begin(microphone, null);
  }

  /** Accepts an invitation of the text agent, by the key of its line. Does nothing if it has expired. */
  accept(invitation: string): void {
    this.begin(true, invitation);
  }

  /** Starts a call that answers this request first. */
  ask(request: string): void {
    this.begin(true, null, request);
  }

  /** Types to the voice agent. Without a call, starts one without a microphone. */
  type(message: string): void {
    if (!running(this.voice.value)) {
      this.talk(false);
    }
    const id = this.call.say(message);
    if (id !== undefined) {
      this.change(() => this.conversation.typedToVoice(id, message));
    }
  }

  /** Stops both agents' answers. */
  stop(): void {
    if (stoppable(this.voice.value)) {
      this.call.stop();
    }
    if (this.text.value.phase === "answering") {
      this.change(() => this.conversation.stopping());
      this.agent.stop();
    }
  }

  hangUp(): void {
    this.call.hangUp();
  }

  /** Turns the microphone on, or mutes or unmutes it. */
  toggleMicrophone(): void {
    void this.call.toggleMicrophone();
  }

  /** Push-to-talk: the button is pressed or released. Does nothing if the model detects turns. */
  press(active: boolean): void {
    const { phase, pushToTalk, pressed } = this.voice.value;
    if (pushToTalk && phase === "open" && pressed !== active) {
      this.call.press(active);
    }
  }

  /** The user's answer to a question, from a button. */
  resolve(token: string, approved: boolean): void {
    const question = this.conversation.questions.answer(token, approved, Date.now());
    if (question === undefined) {
      return;
    }
    this.change(() => undefined);
    if (question.side === "voice") {
      this.call.resolve(token, approved);
    } else {
      this.agent.resolve(this.conversationId(), token, approved);
    }
  }

  /** Statistics of the running session; null between calls. */
  stats(): Stats | null {
    return this.call.session?.stats() ?? null;
  }

  /** Starts the next attempt to reconnect now. */
  retryNow(): void {
    this.call.retryNow();
  }

  /** Starts a new conversation. Not during a call. */
  startAnew(): void {
    if (running(this.voice.value)) {
      return;
    }
    this.agent.leave();
    this.invitations.clear();
    this.id = null;
    forgetConversation();
    this.change(() => this.conversation.begin());
    this.happened({ kind: "anew", side: "text", conversationId: "" });
  }

  /** Changes settings. Devices change at once; other settings apply to the next call. */
  choose(changes: Partial<Settings>): void {
    const settings = { ...this.settings.value, ...changes };
    this.settings.value = settings;
    keepSettings(settings);
    if ("microphone" in changes || "echoCancellation" in changes || "noiseSuppression" in changes) {
      void this.call.useMicrophone(settings);
    }
    if ("speaker" in changes) {
      void this.call.useSpeaker(settings.speaker);
    }
    if ("volume" in changes) {
      this.call.setVolume(settings.volume);
    }
  }

  private begin(microphone: boolean, invitation: string | null, request = this.settings.value.pendingRequest): void {
    const ticket = invitation === null ? undefined : this.invitations.take(invitation);
    if (running(this.voice.value) || (invitation !== null && ticket === undefined)) {
      return;
    }
    const settings = { ...this.settings.value, pendingRequest: request };
    this.change(() => this.conversation.calling(settings.turns === "pushToTalk", invitation));
    this.call.start({ conversation: this.conversationId(), microphone, ...(ticket === undefined ? {} : { ticket }) }, settings);
    this.session.value = this.call.session;
  }

  /**
   * Resumes the call that was open when the page reloaded, and returns its session. Leaves it alone in a copy
   * of a tab whose call continues.
   */
  private goOn(): string | undefined {
    const kept = keptSession();
    const call = takeCall();
    const shown = takeInstruments();
    if (kept === null || kept.leftAt === null || running(this.voice.value)) {
      return undefined;
    }
    this.id = kept.conversationId;
    keepConversation(this.id);
    const settings = { ...this.settings.value, ...call?.settings };
    if (shown !== null) {
      this.instruments.restore?.(shown);
    }
    this.change(() => this.conversation.goingOn(settings.turns === "pushToTalk", call ?? this.conversation.standing));
    const microphone = call?.microphone ?? "off";
    this.call.start({ conversation: this.id, microphone: microphone !== "off", muted: microphone === "muted", resumes: true, turnsBefore: call?.turnsBefore ?? 0 }, settings);
    this.session.value = this.call.session;
    return kept.sessionId;
  }

  /** The page closes; stores what the next page needs for the call. */
  private leave(): void {
    const { session, microphone } = this.voice.value;
    if (session === null || !running(this.voice.value)) {
      return;
    }
    const { inputRate, outputRate, turns } = this.call.settings;
    const heard = microphone === "off" || microphone === "muted" ? microphone : "on";
    keepCall({ ...this.conversation.standing, turnsBefore: this.call.turnsBefore, microphone: heard, settings: { inputRate, outputRate, turns } });
    const shown = this.instruments.keep?.();
    if (shown !== undefined) {
      keepInstruments(shown);
    }
  }

  private happened(what: Told): void {
    const happening = { ...what, at: performance.now(), wall: Date.now() } as Happening;
    if (happening.kind === "uplink" || happening.kind === "downlink") {
      // These events alone change nothing visible.
      this.conversation.take(happening);
    } else {
      this.change(() => this.conversation.take(happening));
      this.notice(happening);
    }
    this.instruments.take(happening);
  }

  /** Applies an event to the rest of the page. */
  private notice(happening: Happening): void {
    if (happening.kind === "noticed" && happening.name === "disconnected") {
      this.session.value = null;
      void this.lookForGateway();
    }
    if (happening.kind !== "received") {
      return;
    }
    const message = happening.message as ServerMessage;
    switch (message.type) {
      case "session.started":
        if (this.settings.value.pendingRequest !== "") {
          this.choose({ pendingRequest: "" });
        }
        return;
      case "voice_session_start":
        return this.invitations.came(message, happening.wall);
      case "confirmation.request":
        return happening.side === "text" ? this.watch(message.token) : undefined;
      default:
    }
  }

  /** The gateway does not report that a question of the text agent has expired. */
  private watch(token: string): void {
    const question = this.questions.value.find((other) => other.token === token);
    if (question?.expires != null) {
      const late = (): void => {
        if (this.questions.value.some((other) => other.token === token && other.approved === null)) {
          this.happened({ kind: "lapsed", side: "text", token });
        }
      };
      setTimeout(late, question.expires - Date.now() + LAST_WORD_MS);
    }
  }

  private answered(error: VoiceError | null, token: string | undefined): void {
    this.conversation.answered(error);
    if (error !== null) {
      void this.lookForGateway();
    }
    if (token === undefined) {
      return;
    }
    const outcome = OUTCOME_OF[error?.gatewayCode ?? ""];
    if (outcome === undefined) {
      this.conversation.questions.reopen("text", token);
    } else {
      this.conversation.question(token, outcome);
    }
  }

  /** The conversation's id, created with its first content. */
  private conversationId(): string {
    if (this.id === null) {
      this.id = newConversation();
      keepConversation(this.id);
    }
    return this.id;
  }

  /** Shows the earlier conversation, except the session that continues. */
  private async recall(conversation: string | null, session: string | undefined): Promise<void> {
    if (conversation === null) {
      return;
    }
    const lines = await askHistory(conversation, this.access.request, session);
    if (lines?.length !== 0) {
      const remark = session === undefined ? words.RECALLED : "";
      this.change(() => this.conversation.transcript.recall(lines ?? [], lines === null ? words.NOT_RECALLED : remark));
    }
  }

  /** Reloads the choices, because agents can change. */
  async lookForOffer(): Promise<void> {
    this.offer.value = (await askOffer(this.access.request)) ?? this.offer.value;
  }

  private async lookForGateway(): Promise<void> {
    if (document.visibilityState === "hidden") {
      return;
    }
    const state = await askReady();
    if (state !== "unreachable" && this.offer.value === null) {
      this.offer.value = await askOffer(this.access.request);
    }
    this.gateway.value = state === "ready" && this.offer.value?.simulator === true ? "simulator" : state;
  }

  private async lookForDevices(): Promise<void> {
    const [microphones, speakers] = await Promise.all([listMicrophones(), listSpeakers()]).catch((): Device[][] => [[], []]);
    this.devices.value = { microphones: named(microphones), speakers: named(speakers) };
  }

  /** Changes the conversation and publishes the changes. */
  private change(action: () => void): void {
    action();
    const { transcript, questions, voice, text } = this.conversation;
    batch(() => {
      this.lines.value = transcript.lines;
      this.questions.value = questions.list;
      this.voice.value = voice;
      this.text.value = text;
    });
  }
}

/** Devices that can be chosen. Before the user allows access, they have no names. */
function named(devices: readonly Device[] = []): readonly Device[] {
  return devices.filter(({ id, label }) => !["", "default", "communications"].includes(id) && label !== "");
}

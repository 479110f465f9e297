import { gatewayError, type Disconnected, type ErrorMessage, type ServerMessage, type SessionStarted, type VoiceError } from "@voicegw/client";
import type { Happening, Side, Watcher } from "./feed.js";
import { HeardCount } from "./heard.js";
import type { Line } from "./lines.js";
import { noticeOf, type Notice } from "./notice.js";
import { Questions } from "./questions.js";
import { READY, type TextState } from "./text.js";
import { Transcript, type Source } from "./transcript.js";
import { afterVoice, SILENT, type CallLength, type VoiceState } from "./voice.js";
import * as words from "../words.js";

/** Errors after which a question can be answered again. */
const NOT_RECORDED = new Set(["store_unavailable", "limit"]);

/** The data with which another page continues a call: the session's name here, the lines and the length. */
export interface Standing {
  readonly source: string;
  readonly lines: readonly Line[];
  readonly length: CallLength;
}

/** A conversation with both agents, derived from events and the user's actions. */
export class Conversation implements Watcher {
  readonly transcript = new Transcript();
  readonly questions = new Questions();
  voice: VoiceState = SILENT;
  text: TextState = READY;
  private readonly heard = new HeardCount();
  private readonly source: { [S in Side]: Source } = { voice: { side: "voice", id: "voice-0" }, text: { side: "text", id: "text-0" } };
  private counted = 0;
  /** The accepted invitation of the call. */
  private taken: string | null = null;
  /** The call already has a session, so the next one is new. */
  private inCall = false;
  /** The last message to the text agent. */
  private asked = "";

  take(happening: Happening): void {
    if (happening.kind === "downlink") {
      this.heard.came(happening.item, (happening.pcm.length * 1000) / happening.rate);
      return;
    }
    if (happening.kind === "uplink") {
      return;
    }
    const before = this.voice;
    if (happening.side === "voice") {
      this.voice = afterVoice(this.voice, happening);
    }
    if (happening.kind === "received" && happening.message.type === "session.started") {
      this.started(happening.message as SessionStarted, before, happening.wall);
    } else if (happening.kind === "received") {
      this.received(happening.side, happening.message as ServerMessage, happening.wall);
    } else if (happening.kind === "noticed") {
      this.noticed(happening);
    } else if (happening.kind === "lapsed") {
      this.question(happening.token, "expired");
    }
  }

  /** Starts a new conversation, between calls. */
  begin(): void {
    this.transcript.clear();
    this.questions.clear();
    this.text = READY;
    this.voice = SILENT;
  }

  /** A call begins. invitation: the key of the accepted invitation's line, if any. */
  calling(pushToTalk: boolean, invitation: string | null): void {
    this.taken = invitation;
    this.inCall = false;
    this.voice = { ...SILENT, phase: "connecting", pushToTalk };
    if (invitation !== null) {
      this.transcript.settleHandoff(invitation, "taken");
    }
  }

  /** The call continues after a reload, with its stored lines. */
  goingOn(pushToTalk: boolean, { source, lines, length }: Standing): void {
    this.calling(pushToTalk, null);
    this.voice = { ...this.voice, ...length };
    this.source.voice = { side: "voice", id: source };
    // Avoid source names that occur in the stored lines.
    this.counted = Math.max(this.counted, Number(/\d+$/.exec(source)?.[0] ?? 0));
    this.transcript.restore(this.source.voice, lines);
  }

  /** The data with which another page continues the call. */
  get standing(): Standing {
    const { began, turns, turn } = this.voice;
    return { source: this.source.voice.id, lines: this.transcript.keep(this.source.voice), length: { began, turns, turn } };
  }

  /** An invitation was not accepted. */
  missed(invitation: string): void {
    this.transcript.settleHandoff(invitation, "over");
  }

  /** The user typed to the voice agent; id is that of the transcript. */
  typedToVoice(id: string, text: string): void {
    this.transcript.typed(this.source.voice, id, text);
  }

  /** A request to the text agent begins, with a message or the answer to a question. */
  asking(message: string | undefined): void {
    this.source.text = { side: "text", id: `text-${++this.counted}` };
    this.text = { phase: "answering", writing: false, notice: null };
    this.asked = message ?? "";
    if (message !== undefined) {
      this.transcript.typed(this.source.text, "user", message);
    }
  }

  /** The user cancelled the answer. */
  stopping(): void {
    if (this.text.phase === "answering") {
      this.text = { ...this.text, phase: "stopping" };
    }
  }

  /** The request is over, with the error if it failed. */
  answered(error: VoiceError | null): void {
    const source = this.source.text;
    if (this.text.phase === "stopping") {
      if (!this.transcript.cutOff(source, undefined)) {
        this.transcript.remark("text", { text: words.STOPPED });
      }
    } else if (error !== null) {
      this.transcript.trouble("text", { ...noticeOf(error), again: error.retryable ? this.asked : "" });
    }
    this.transcript.settle(source);
    this.text = { ...this.text, phase: "ready", writing: false };
  }

  /** The text agent is unavailable, with the reason; null if it is available. */
  closed(notice: Notice | null): void {
    this.text = { ...this.text, notice };
  }

  /** A question is over. */
  question(token: string, outcome: string): void {
    const question = this.questions.ended(token);
    if (question !== undefined) {
      const elsewhere = question.approved === null && (outcome === "approved" || outcome === "denied");
      this.transcript.outcome(question.side, { preview: question.preview, outcome, elsewhere });
    }
  }

  private received(side: Side, message: ServerMessage, wall: number): void {
    const source = this.source[side];
    switch (message.type) {
      case "transcript":
        return this.transcript.upsert(source, message);
      case "text.delta":
        this.text = { ...this.text, writing: true };
        return this.transcript.delta(source, message);
      case "text.done":
        return this.transcript.done(source, message);
      case "tool.started":
        return this.transcript.toolStarted(source, message);
      case "tool.progress":
        return this.transcript.toolProgress(source, message);
      case "tool.ended":
        return this.transcript.toolEnded(source, message);
      case "ui.image":
        return this.transcript.picture(source, message);
      case "confirmation.request":
        return this.questions.asked(side, message, wall);
      case "confirmation.ended":
        return this.question(message.token, message.outcome);
      case "agent.switched":
        return this.transcript.remark(side, { text: words.switched(message) });
      case "error":
        return this.failed(side, message);
      default:
        return side === "voice" ? this.spoken(message) : this.written(message, wall);
    }
  }

  /** Handles messages that only the voice agent sends. */
  private spoken(message: ServerMessage): void {
    const source = this.source.voice;
    switch (message.type) {
      case "speech.started":
        return this.transcript.hearing(source, message.turn);
      case "audio.end":
        return this.heard.all(message.item_id, message.audio_ms);
      case "audio.flush":
        this.transcript.cutOff(source, message.turn, this.heard.whole());
        return this.heard.flushed(message.item_id, this.transcript.length(source, message.item_id));
      case "turn.ended":
        this.transcript.unheard(source, message.turn);
        if (message.status !== "completed") {
          this.transcript.cutOff(source, message.turn, this.heard.whole());
        }
        return;
      default:
    }
  }

  /** Handles messages that only the text agent sends. */
  private written(message: ServerMessage, wall: number): void {
    switch (message.type) {
      case "voice_session_start": {
        const end = Date.parse(message.expires_at ?? "");
        const invitation = { state: "offered", request: message.pendingRequest ?? "", expires: end > wall ? end : null } as const;
        return this.transcript.handoff("voice", invitation, message.sessionId);
      }
      case "timeout":
        return this.closed({ title: message.message, advice: words.shutOut(message.timeoutUntil) });
      default:
    }
  }

  private noticed(happening: Happening & { kind: "noticed" }): void {
    switch (happening.name) {
      case "played": {
        const heard = this.heard.played(happening.event.item, happening.event.playedMs);
        return heard === null ? undefined : this.transcript.heard(this.source.voice, happening.event.item, heard.share, heard.length);
      }
      case "disconnected":
        return this.ended(happening.event, happening.wall);
      default:
    }
  }

  private started(message: SessionStarted, before: VoiceState, wall: number): void {
    if (message.resumed !== true || !this.inCall) {
      this.opened(message.resumed === true, before, wall);
      return;
    }
    if (message.snapshot === true) {
      // Running tools are reported again.
      this.transcript.settle(this.source.voice);
    }
    const unheardMs = before.retry === null || before.microphone !== "live" ? 0 : wall - Math.max(before.retry.keptUntil, before.retry.lostAt);
    if (unheardMs >= 1000) {
      this.transcript.remark("voice", { text: words.resumed(unheardMs) });
    }
  }

  /**
   * A session begins: another one, perhaps after a lost connection, or the previous page's. `before` is the
   * call's earlier state.
   */
  private opened(resumes: boolean, before: VoiceState, wall: number): void {
    const lost = {
      speechMs: before.retry !== null && before.microphone === "live" ? wall - before.retry.lostAt : 0,
      answer: before.owed || before.sounding !== null,
      tools: this.transcript.runningTools(this.source.voice),
      questions: this.questions.list.filter(({ side }) => side === "voice").length,
    };
    this.overByVoice();
    const again = this.inCall;
    this.inCall = true;
    if (resumes) {
      this.transcript.remark("voice", { text: words.RELOADED });
      return;
    }
    this.source.voice = { side: "voice", id: `voice-${++this.counted}` };
    if (again) {
      this.transcript.remark("voice", { text: words.newSession(lost) });
    } else if (this.taken === null) {
      this.transcript.handoff("voice", { state: "taken" });
    }
  }

  private ended({ reason, handback, error }: Disconnected, wall: number): void {
    this.overByVoice();
    const { session, turns, began } = this.voice;
    if (reason === "moved") {
      this.transcript.remark("voice", { text: words.MOVED });
    }
    if (session === null && this.taken !== null) {
      // The text agent's request never reached the voice agent.
      this.transcript.settleHandoff(this.taken, "failed");
    }
    if (session === null || reason === "moved" || reason === "page_left") {
      // There was no call, or it continues elsewhere.
      return;
    }
    const length = { turns, ms: wall - (began ?? wall) };
    if (handback === undefined && error !== undefined && error.code !== "aborted") {
      // Without the gateway's last message, the text agent received nothing.
      this.transcript.handoff("text", { state: "failed", ...length });
      return;
    }
    this.transcript.handoff("text", { state: "taken", summary: handback?.summary ?? "", ...length });
  }

  /** Ends everything open in the session. */
  private overByVoice(): void {
    for (const { item, share } of this.heard.broken()) {
      // An answer cut off by the session's end is not flushed.
      this.transcript.heard(this.source.voice, item, share, this.transcript.length(this.source.voice, item));
    }
    this.transcript.settle(this.source.voice);
    this.heard.clear();
    for (const { preview } of this.questions.endedAll("voice")) {
      this.transcript.outcome("voice", { preview, outcome: "unanswered", elsewhere: false });
    }
  }

  private failed(side: Side, message: ErrorMessage): void {
    if (NOT_RECORDED.has(message.code)) {
      this.questions.reopen(side);
    }
    if (side === "text") {
      // By voice, the error also arrives as a warning and is shown at the controls.
      this.transcript.trouble("text", { ...noticeOf(gatewayError(message)), again: message.retryable ? this.asked : "" });
    }
  }
}

// The session's state, tool requests to it, and this page's statistics.
import type { Stats } from "@voicegw/client";
import type { Instruments } from "../instruments.js";
import type { Agent, Intent } from "../model/agent.js";
import { Empty, Fact, useNow } from "./bits.js";
import { CopyButton } from "./json.js";
import { BudgetView } from "./timeline.js";
import { duration, FACT, PHASE, plural, STATE, timeOfDay } from "./words-instruments.js";
import "./state.css";

/** The client library's statistics; null without a session. */
export type ReadStats = () => Stats | null;

export function StatePanel({ instruments, stats }: { instruments: Instruments; stats: ReadStats }) {
  void instruments.changed.value;
  const { agent } = instruments;
  if (agent.session === undefined) {
    return <Empty>{STATE.empty}</Empty>;
  }
  return (
    <div class="i-state">
      <section aria-labelledby="i-state-now">
        <h3 id="i-state-now">{STATE.now}</h3>
        <NowView agent={agent} />
      </section>
      <section aria-labelledby="i-state-intents">
        <h3 id="i-state-intents">{STATE.intents}</h3>
        <Intents intents={agent.intents} />
      </section>
      <section aria-labelledby="i-state-session">
        <h3 id="i-state-session">{STATE.session}</h3>
        <SessionView agent={agent} />
      </section>
      <section aria-labelledby="i-state-here">
        <h3 id="i-state-here">{STATE.here}</h3>
        <Here stats={stats} running={agent.running} />
      </section>
    </div>
  );
}

function NowView({ agent: { state, budget, running } }: { agent: Agent }) {
  if (state === undefined) {
    return <p class="i-quiet">{STATE.noInspect}</p>;
  }
  const off = [state.suppressed.audio ? "audio" : "", state.suppressed.transcript ? "transcript" : ""].filter((what) => what !== "");
  return (
    <>
      <dl class="i-facts">
        <Fact name={FACT.phase}>{running ? (PHASE[state.phase] ?? state.phase) : PHASE["ended"]}</Fact>
        <Fact name={FACT.user}>{state.muted ? FACT.userMuted : state.speaking ? FACT.userSpeaks : FACT.userSilent}</Fact>
        <Fact name={FACT.model}>{state.responding ? FACT.answering : FACT.waiting}</Fact>
        <Fact name={FACT.pending}>{state.awaiting}</Fact>
        <Fact name={FACT.questions}>{state.questions}</Fact>
        <Fact name={FACT.notices}>{plural(state.notices, "message", "messages")}</Fact>
        <Fact name={FACT.disabled}>{off.length === 0 ? FACT.nothing : off.join(" and ")}</Fact>
      </dl>
      {budget !== undefined && <BudgetView budget={budget} />}
    </>
  );
}

function Intents({ intents }: { intents: readonly Intent[] }) {
  if (intents.length === 0) {
    return <p class="i-quiet">{STATE.noIntents}</p>;
  }
  return (
    <ul class="i-intents">
      {intents.map(({ number, wall, turn, type, payload, applied, why }) => (
        <li key={number}>
          <span class="i-intent-type">{type}</span>{" "}
          <span class={`i-chip ${applied ? "i-chip-good" : "i-chip-bad"}`}>{applied ? "done" : "refused"}</span>
          <span class="i-quiet">
            {" "}
            {Object.entries(payload).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ")}
          </span>
          {why !== undefined && <span class="i-intent-why">{why}</span>}
          <span class="i-quiet i-intent-when">
            {turn === undefined ? "" : `turn ${turn}, `}
            {timeOfDay(wall)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function SessionView({ agent: { session } }: { agent: Agent }) {
  if (session === undefined) {
    return null;
  }
  return (
    <dl class="i-facts">
      <Fact name={FACT.id}>
        <span class="i-id">
          <code>{session.session_id}</code>
          <CopyButton what="session id" text={() => session.session_id} />
        </span>
      </Fact>
      <Fact name={FACT.conversation}>{session.conversation_id === undefined ? undefined : <code>{session.conversation_id}</code>}</Fact>
      <Fact name={FACT.provider}>{session.provider}</Fact>
      <Fact name={FACT.model}>{session.model}</Fact>
      <Fact name={FACT.voice}>{session.voice}</Fact>
      <Fact name={FACT.agent}>{session.agent}</Fact>
      <Fact name={FACT.tools}>{session.tools_version === undefined ? undefined : <code>{session.tools_version}</code>}</Fact>
      <Fact name={FACT.rates}>{`${session.input_rate} Hz up, ${session.output_rate} Hz down`}</Fact>
      <Fact name={FACT.expires}>{session.expires_at === null ? FACT.never : timeOfDay(Date.parse(session.expires_at)).slice(0, 8)}</Fact>
      <Fact name={FACT.resumed}>{session.resumed ? FACT.yes : FACT.no}</Fact>
    </dl>
  );
}

function Here({ stats, running }: { stats: ReadStats; running: boolean }) {
  useNow(running);
  const read = stats();
  if (read === null) {
    return <p class="i-quiet">{STATE.empty}</p>;
  }
  const ms = (value: number | null): string => (value === null ? FACT.unmeasured : duration(value));
  return (
    <dl class="i-facts">
      <Fact name={FACT.rtt}>{ms(read.rttMs)}</Fact>
      <Fact name={FACT.bestRtt}>{ms(read.bestRttMs)}</Fact>
      <Fact name={FACT.cushion}>{duration(read.cushionMs)}</Fact>
      <Fact name={FACT.underruns}>{read.underruns}</Fact>
      <Fact name={FACT.sent}>{plural(read.audioFramesSent, "frame", "frames")}</Fact>
      <Fact name={FACT.received}>{plural(read.audioFramesReceived, "frame", "frames")}</Fact>
      <Fact name={FACT.droppedSlow}>{plural(read.droppedSlow, "frame", "frames")}</Fact>
      <Fact name={FACT.droppedOffline}>{plural(read.droppedOffline, "frame", "frames")}</Fact>
      <Fact name={FACT.bytes}>{`${thousands(read.bytesSent)} sent, ${thousands(read.bytesReceived)} received`}</Fact>
      <Fact name={FACT.messages}>{`${read.messagesSent} sent, ${read.messagesReceived} received`}</Fact>
      <Fact name={FACT.unknown}>{plural(read.unknownMessages, "message", "messages")}</Fact>
      <Fact name={FACT.gaps}>{`${read.gaps}, ${read.repeats}`}</Fact>
      <Fact name={FACT.reconnects}>{`${read.reconnects}, of them ${read.resumes} resumed`}</Fact>
    </dl>
  );
}

function thousands(bytes: number): string {
  return bytes < 10_000 ? `${bytes} B` : bytes < 10_000_000 ? `${Math.round(bytes / 1000)} kB` : `${Math.round(bytes / 1_000_000)} MB`;
}

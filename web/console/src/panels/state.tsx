// Where the session stands, what tools wanted of it, and what this page counts.
import type { Stats } from "@voicegw/client";
import type { Instruments } from "../instruments.js";
import type { Agent, Intent } from "../model/agent.js";
import { Empty, Fact, useNow } from "./bits.js";
import { CopyButton } from "./json.js";
import { BudgetView } from "./timeline.js";
import { duration, PHASE, plural, STATE, timeOfDay } from "./words-instruments.js";
import "./state.css";

/** What the client library counts; null without a session. */
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
        <Fact name="Phase">{running ? (PHASE[state.phase] ?? state.phase) : PHASE["ended"]}</Fact>
        <Fact name="User">{state.muted ? "not listened to any more" : state.speaking ? "speaks" : "is silent"}</Fact>
        <Fact name="Model">{state.responding ? "is answering" : "waits"}</Fact>
        <Fact name="Calls owed">{state.awaiting}</Fact>
        <Fact name="Open questions">{state.questions}</Fact>
        <Fact name="Kept for the next turn">{plural(state.notices, "message", "messages")}</Fact>
        <Fact name="Turned off by a tool">{off.length === 0 ? "nothing" : off.join(" and ")}</Fact>
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
      <Fact name="Id">
        <span class="i-id">
          <code>{session.session_id}</code>
          <CopyButton what="session id" text={() => session.session_id} />
        </span>
      </Fact>
      <Fact name="Conversation">{session.conversation_id === undefined ? undefined : <code>{session.conversation_id}</code>}</Fact>
      <Fact name="Provider">{session.provider}</Fact>
      <Fact name="Model">{session.model}</Fact>
      <Fact name="Voice">{session.voice}</Fact>
      <Fact name="Agent">{session.agent}</Fact>
      <Fact name="Tools version">{session.tools_version === undefined ? undefined : <code>{session.tools_version}</code>}</Fact>
      <Fact name="Rates">{`${session.input_rate} Hz up, ${session.output_rate} Hz down`}</Fact>
      <Fact name="Ends at the latest">{session.expires_at === null ? "no limit" : timeOfDay(Date.parse(session.expires_at)).slice(0, 8)}</Fact>
      <Fact name="Taken up again">{session.resumed ? "yes" : "no"}</Fact>
    </dl>
  );
}

function Here({ stats, running }: { stats: ReadStats; running: boolean }) {
  useNow(running);
  const read = stats();
  if (read === null) {
    return <p class="i-quiet">{STATE.empty}</p>;
  }
  const ms = (value: number | null): string => (value === null ? "not measured yet" : duration(value));
  return (
    <dl class="i-facts">
      <Fact name="Round trip">{ms(read.rttMs)}</Fact>
      <Fact name="Fastest">{ms(read.bestRttMs)}</Fact>
      <Fact name="Cushion">{duration(read.cushionMs)}</Fact>
      <Fact name="Ran dry">{plural(read.underruns, "time", "times")}</Fact>
      <Fact name="Audio sent">{plural(read.audioFramesSent, "frame", "frames")}</Fact>
      <Fact name="Audio received">{plural(read.audioFramesReceived, "frame", "frames")}</Fact>
      <Fact name="Not sent, line too slow">{plural(read.droppedSlow, "frame", "frames")}</Fact>
      <Fact name="Not sent, no line">{plural(read.droppedOffline, "frame", "frames")}</Fact>
      <Fact name="Bytes">{`${thousands(read.bytesSent)} sent, ${thousands(read.bytesReceived)} received`}</Fact>
      <Fact name="Messages">{`${read.messagesSent} sent, ${read.messagesReceived} received`}</Fact>
      <Fact name="Not understood">{plural(read.unknownMessages, "message", "messages")}</Fact>
      <Fact name="Missed, came again">{`${read.gaps}, ${read.repeats}`}</Fact>
      <Fact name="Connections restored">{`${read.reconnects}, the session kept in ${read.resumes}`}</Fact>
    </dl>
  );
}

function thousands(bytes: number): string {
  return bytes < 10_000 ? `${bytes} B` : bytes < 10_000_000 ? `${Math.round(bytes / 1000)} kB` : `${Math.round(bytes / 1_000_000)} MB`;
}

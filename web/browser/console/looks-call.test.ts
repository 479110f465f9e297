// The console in every state of a call, light and dark, wide and narrow: everything fits, nothing jumps, axe finds
// nothing. Screenshots are in out/.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import type { VisitorOptions } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { FakeGateway, NO_USAGE, type Sent, type Visit } from "../harness/fakegateway.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";
import { babble, pcm16 } from "../harness/signals.ts";

let browser: Browser;
let real: Gateway;
/** Made before the call: a fake gateway that computes it for seconds answers no ping. */
let speech: Int16Array;
beforeAll(async () => {
  speech = pcm16(babble, 24000, 60);
  browser = await openChromium(recording(babble, 120));
  real = await Gateway.open();
});
afterAll(async () => {
  await browser.close();
  await real.close();
});

const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 10, 0, second)).toISOString();

function said(id: string, role: "user" | "assistant", second: number, text: string, turn = 1): Sent {
  return { type: "transcript", turn, id, role, text, final: true, started_at: at(second) };
}

function asks(token: string, preview: string, args: Record<string, unknown>): Sent {
  return { type: "confirmation.request", turn: 2, token, tool: "calendar_create_event", args, args_source: "", preview, expires_at: new Date(Date.now() + 290_000).toISOString() };
}

/** Opens a console with a fake gateway. */
async function opened(options: VisitorOptions = {}) {
  const gateway = await FakeGateway.open(real);
  const console = await ConsolePage.open(browser, gateway, options);
  console.visitor.expect(/WebSocket connection to .* failed/);
  const close = async () => {
    await console.leave();
    await gateway.close();
  };
  return { gateway, console, looks: new Looks(console.page), close };
}

function answer(visit: Visit, item: string, turn: number): void {
  visit.send({ type: "audio.start", turn, item_id: item });
  visit.sendAudio(speech);
}

describe.concurrent("a call", () => {
  test("from its beginning to its end", async () => {
    const { gateway, console, looks, close } = await opened();
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await console.says("Listening");
    looks.steady();
    await looks.take("listening");
    visit.send({ type: "speech.started", turn: 1, audio_ms: 300 });
    await console.says("You are speaking");
    await looks.take("hearing");
    visit.send({ type: "speech.stopped", turn: 1, audio_ms: 2100 });
    visit.send({ type: "turn.started", turn: 1 });
    visit.send(said("u1", "user", 1, "Who wrote the first programme?"));
    await console.says("Thinking");
    await looks.take("thinking");
    visit.send({ type: "tool.started", turn: 1, call_id: "call_1", tool: "kb_search", category: "retrieval" });
    visit.send({ type: "tool.progress", turn: 1, call_id: "call_1", tool: "kb_search", category: "retrieval", duration_ms: 1400 });
    await console.line("still running");
    await looks.take("tool-running");
    visit.send({ type: "tool.ended", turn: 1, call_id: "call_1", tool: "kb_search", category: "retrieval", ok: true, duration_ms: 1618, clamped: { top_k: { requested: 10, applied: 3 } } });
    answer(visit, "item_1", 1);
    visit.send(said("a1", "assistant", 4, "The first programme was written by Ada Lovelace, for a machine that was never built: Charles Babbage's Analytical Engine."));
    await console.says("Speaking");
    await looks.take("speaking");
    visit.send(asks("t1", "Book “Lunch with Ada” on Friday 27 November, 12:00 to 13:00, and invite 2 people?", {
      title: "Lunch", start: "2026-11-27T12:00:00Z", attendees: ["ada@example.org"],
      description: "Every word of what is approved is here to be read. https://example.org/a/very/long/address/that/cannot/be/broken/anywhere",
    }));
    // An approval request shows all of its arguments.
    const question = await console.question("Lunch with Ada");
    await looks.take("question", [question.getByText("Book “Lunch with Ada”"), ...(await question.getByRole("button").all())]);
    visit.send(asks("t2", "Cancel dinner?", {}));
    await console.question("Cancel dinner?");
    await looks.take("questions");
    visit.send({ type: "confirmation.ended", turn: 2, token: "t1", tool: "calendar_create_event", outcome: "approved" });
    visit.send({ type: "confirmation.ended", turn: 2, token: "t2", tool: "calendar_create_event", outcome: "expired" });
    await console.line(/not answered in time$/);
    visit.send({ type: "speech.started", turn: 2, audio_ms: 8000 });
    visit.send({ type: "audio.flush", turn: 1, item_id: "item_1", reason: "user_speech" });
    visit.send({ type: "turn.ended", turn: 1, status: "interrupted", usage: NO_USAGE, latency: { speech_end_to_first_audio_ms: 820, detection_ms: 300, provider_ms: 500, gateway_ms: 20 } });
    visit.send({ type: "speech.stopped", turn: 2, audio_ms: 9000 });
    visit.send(said("u2", "user", 9, "Just her dates, please.", 2));
    await console.line("Cut off.");
    await looks.take("interrupted");
    visit.send({ type: "error", code: "no_answer", message: "The model gave no answer.", retryable: true });
    await console.call.getByText("The model gave no answer.").waitFor();
    await looks.take("no-answer");
    await console.press("Mute");
    await console.says("Muted");
    await looks.take("muted");
    visit.send({ type: "provider.reconnecting", reason: "provider_lost" });
    await console.says("Reconnecting");
    await looks.take("restoring");
    visit.send({ type: "provider.reconnected", lost_ms: 800 });
    visit.send({ type: "session.ending", reason: "length_limit", after: 30_000 });
    await console.call.getByText("The call ends in 30 s.").waitFor();
    await looks.take("ending");
    visit.send({ type: "session.ended", reason: "length_limit", handback: { conversation_id: "c-1", summary: "2 turns over 24s. The user's last words: \"Just her dates, please.\"." } });
    visit.close(4005);
    await console.says("Ended");
    await looks.take("ended");
    await close();
  });

  test("before it begins", async () => {
    const { gateway, console, looks, close } = await opened();
    await looks.take("empty");
    await console.press("Start talking");
    await gateway.visit();
    await console.says("Connecting");
    await looks.take("connecting");
    await close();
  });

  test("whose connection broke and whose session moved to another gateway", async () => {
    const { gateway, console, looks, close } = await opened();
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await console.says("Listening");
    looks.steady();
    visit.send({ type: "turn.started", turn: 1 });
    visit.send(said("u1", "user", 1, "Book lunch with Ada, and tell me who she was."));
    visit.send({ type: "tool.started", turn: 1, call_id: "call_1", tool: "kb_search", category: "retrieval" });
    visit.send(asks("t1", "Book “Lunch with Ada” on Friday 27 November, 12:00 to 13:00?", { title: "Lunch" }));
    visit.send(said("a1", "assistant", 4, "Ada Lovelace wrote the first programme, for a machine"));
    answer(visit, "item_1", 1);
    await console.says("Speaking");
    await console.question("Lunch with Ada");
    gateway.refusing = 503;
    visit.cut();
    await console.says("Reconnecting");
    await looks.take("reconnecting");
    gateway.refusing = undefined;
    await console.press("Try now");
    const other = await gateway.visit();
    await other.welcome({ resumed: true, snapshot: true, resume_token: "token-2" });
    other.send({ type: "turn.started", turn: 1 });
    other.send(said("u1", "user", 1, "Book lunch with Ada, and tell me who she was."));
    other.send(asks("t1", "Book “Lunch with Ada” on Friday 27 November, 12:00 to 13:00?", { title: "Lunch" }));
    other.send({ type: "provider.reconnected", reason: "node_lost", lost_ms: 2600, how: "replayed" });
    // The received part of the answer keeps playing.
    await console.says("Speaking");
    await console.line("kb_search not finished");
    await looks.take("taken-over");
    other.close(4007);
    const moved = await gateway.visit();
    await moved.welcome({ resumed: true, snapshot: true, resume_token: "token-3" });
    moved.send(asks("t1", "Book “Lunch with Ada” on Friday 27 November, 12:00 to 13:00?", { title: "Lunch" }));
    moved.send({ type: "speech.started", turn: 2, audio_ms: 8000 });
    await console.says("You are speaking");
    await looks.take("moved");
    // The session is lost: the conversation continues in another one.
    moved.cut();
    const refused = await gateway.visit();
    await refused.started();
    refused.send({ type: "error", code: "resume_refused", message: "This session cannot be taken up.", retryable: false });
    refused.close(4501);
    await gateway.welcome({ session_id: "voice-2", resume_token: "token-4" });
    await console.line("The conversation continues in a new session.");
    await looks.take("reconnected");
    await close();
  });

  // A stoppable clock runs late timers all at once, so this is a test of its own.
  test("that stays unreachable ends", async () => {
    const { gateway, console, looks, close } = await opened({ stoppable: true });
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await console.says("Listening");
    gateway.refusing = 503;
    console.visitor.expect(/Failed to load resource: .* 503/); // the page asks why a handshake failed
    visit.cut();
    await console.says("Reconnecting");
    await console.visitor.stopTime();
    while (!console.hasSaid("Ended")) {
      await console.visitor.pass(10_000);
    }
    await console.visitor.resumeTime();
    await console.says("Ended");
    await looks.take("lost");
    await close();
  });

  test("that continues in another tab", async () => {
    const { gateway, console, looks, close } = await opened();
    await console.press("Start talking");
    const visit = await gateway.welcome();
    await console.says("Listening");
    visit.send(said("u1", "user", 1, "Who wrote the first programme?"));
    await console.line("Who wrote");
    visit.close(4506);
    await console.says("Ended");
    await looks.take("in-another-tab");
    await close();
  });

  test("whose microphone is blocked, and whose user is blocked", async () => {
    const { gateway, console, looks, close } = await opened({ microphone: false });
    await console.press("Start talking");
    const visit = await gateway.welcome();
    // Without a microphone, that is the headline.
    await console.says("The microphone is blocked");
    await looks.take("microphone-blocked");
    visit.send({ type: "timeout", turn: 1, timeoutUntil: Date.now() + 300_000, durationSeconds: 300, message: "Let us talk again in five minutes." });
    visit.send({ type: "error", code: "blocked", message: "You are blocked for a while.", retryable: false, until: new Date(Date.now() + 300_000).toISOString() });
    visit.send({ type: "session.ended", reason: "blocked" });
    visit.close(4503);
    await console.says("Ended");
    await looks.take("blocked");
    await close();
  });

  test("with push-to-talk, chosen in the settings", async () => {
    const { gateway, console, looks, close } = await opened();
    await console.press("Keyboard shortcuts");
    await looks.take("help");
    await console.page.keyboard.press("Escape");
    await console.press("Settings");
    await looks.take("settings");
    await console.page.getByRole("radio", { name: "Push-to-talk" }).check();
    await console.page.keyboard.press("Escape");
    await console.press("Start talking");
    const visit = await gateway.visit();
    expect((await visit.started()).turn_detection).toBe("client");
    await visit.welcome();
    await console.says("Ready");
    await looks.take("push-to-talk");
    await console.log.focus();
    await console.page.keyboard.down(" ");
    expect(await visit.next("input.activity")).toMatchObject({ active: true });
    await console.says("You are speaking");
    await looks.take("push-to-talk-pressed");
    await console.page.keyboard.up(" ");
    expect(await visit.next("input.activity")).toMatchObject({ active: false });
    await close();
  });
});

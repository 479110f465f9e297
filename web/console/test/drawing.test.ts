import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import type { Picture, Surface } from "../src/ui/paint.js";
import { Sheets, type Message } from "../src/ui/sheets.js";
import { Studio, type Drawer } from "../src/ui/studio.js";

const LEVEL: Picture = { kind: "level", side: "user", share: 0.5, glideMs: 0 };
const SURFACE = { width: 100, height: 4, ratio: 1, font: "", palette: { user: "brown", model: "green" } } as Surface;

/** A canvas that records its sizes and fills. */
function easel(): { canvas: OffscreenCanvas; done: string[] } {
  const done: string[] = [];
  const context = {
    fillStyle: "",
    clearRect: () => done.push("clear"),
    beginPath: () => undefined,
    roundRect: (x: number, y: number, w: number, h: number) => done.push(`${context.fillStyle} ${x},${y} ${w}x${h}`),
    fill: () => undefined,
  };
  const canvas = { getContext: () => context, set width(width: number) { done.push(`width ${width}`); }, set height(height: number) { done.push(`height ${height}`); } };
  return { canvas: canvas as unknown as OffscreenCanvas, done };
}

/** A worker that only acts on request. */
class Idle implements Drawer {
  onmessage: Worker["onmessage"] = null;
  onerror: Worker["onerror"] = null;
  readonly posted: { messages: Message[]; transfer: unknown[] }[] = [];
  over = false;

  postMessage(messages: Message[], transfer: unknown): void {
    this.posted.push({ messages, transfer: transfer as unknown[] });
  }

  terminate(): void {
    this.over = true;
  }

  says(): void {
    this.onmessage!.call(this as unknown as Worker, { data: true } as MessageEvent);
  }

  fails(): void {
    this.onerror!.call(this as unknown as Worker, {} as ErrorEvent);
  }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout"] }));
afterEach(() => vi.useRealTimers());

test("a sheet is drawn, resized once, and removed when it is closed", () => {
  const { canvas, done } = easel();
  const sheets = new Sheets(() => assert.fail("nothing glides"));
  sheets.take([{ id: 1, canvas }]);
  sheets.take([{ id: 1, order: { surface: SURFACE, picture: LEVEL } }, { id: 2, order: { surface: SURFACE, picture: LEVEL } }]);
  sheets.take([{ id: 1, order: { picture: { ...LEVEL, side: "model", share: 0.2 } } }]);
  assert.deepEqual(done.splice(0), ["width 100", "height 4", "clear", "brown 50,0 50x4", "clear", "green 0,0 20x4"]);
  // A change of colours must not set the size, which would empty it.
  sheets.take([{ id: 1, order: { surface: { ...SURFACE, palette: { ...SURFACE.palette, user: "black" } }, picture: { ...LEVEL, share: 0 } } }]);
  sheets.take([{ id: 1, order: { picture: LEVEL } }]);
  assert.deepEqual(done.splice(0), ["clear", "clear", "black 50,0 50x4"]);
  sheets.take([{ id: 1, closed: true }, { id: 1, order: { picture: LEVEL } }]);
  assert.deepEqual(done, []);
});

test("a level moves gradually from its current value to the next", () => {
  const { canvas, done } = easel();
  const next: ((now: number) => void)[] = [];
  const frame = (now: number): string[] => {
    next.splice(0).forEach((draw) => draw(now));
    return done.splice(0).filter((action) => action !== "clear");
  };
  const sheets = new Sheets((draw) => next.push(draw));
  const level = (share: number): Message => ({ id: 1, order: { surface: SURFACE, picture: { ...LEVEL, side: "model", share, glideMs: 100 } } });
  sheets.take([{ id: 1, canvas }, level(0.2)]);
  assert.deepEqual(done.splice(0).at(-1), "green 0,0 20x4", "the first is drawn at once");
  sheets.take([level(0.6)]);
  assert.deepEqual([frame(1000), frame(1050)], [["green 0,0 20x4"], ["green 0,0 40x4"]]);
  sheets.take([level(0)]);
  assert.deepEqual([frame(1060), frame(1110), frame(1170), frame(1180)], [["green 0,0 40x4"], ["green 0,0 20x4"], [], []]);
  assert.deepEqual(next, [], "a finished level requests no frames");
  sheets.take([level(0.6), { id: 1, closed: true }]);
  assert.deepEqual(frame(2000), []);
});

test("a studio needs a worker that reports it runs", async () => {
  assert.equal(await Studio.start(() => { throw new Error("not here"); }), null);
  const broken = new Idle();
  const never = Studio.start(() => broken);
  broken.fails();
  assert.equal(await never, null);
  assert.equal(broken.over, true);
  const mute = new Idle();
  const late = Studio.start(() => mute);
  vi.advanceTimersByTime(10_000);
  assert.equal(await late, null);
  assert.equal(mute.over, true, "it would draw as well as the page");
});

test("simultaneous drawings share one message; the first one contains the canvas", async () => {
  const worker = new Idle();
  const starting = Studio.start(() => worker);
  worker.says();
  const studio = (await starting)!;
  const [one, two] = [easel().canvas, easel().canvas];
  const ids = [studio.open(one), studio.open(two)] as const;
  studio.draw(ids[1], { surface: SURFACE, picture: LEVEL });
  await Promise.resolve();
  assert.equal(worker.posted.length, 1);
  assert.deepEqual(worker.posted[0]!.transfer, [one, two]);
  assert.deepEqual(worker.posted[0]!.messages.map(({ id }) => id), [ids[0], ids[1], ids[1]]);
  studio.draw(ids[0], { picture: LEVEL });
  studio.close(ids[1]);
  await Promise.resolve();
  assert.deepEqual(worker.posted.slice(1), [{ messages: [{ id: ids[0], order: { picture: LEVEL } }, { id: ids[1], closed: true }], transfer: [] }]);
  assert.equal(worker.over, false);
});

// @vitest-environment happy-dom
import assert from "node:assert/strict";
import { afterEach, beforeEach, test, vi } from "vitest";
import { VoiceError } from "../src/errors.js";
import { VoiceSession } from "../src/session.js";
import { FakeWebSocket, installNetwork, removeNetwork, settle } from "./fakes.js";

vi.mock("../src/audio/setup.js", () => ({
  AudioSetup: class {
    ready = false;
    open = async (): Promise<void> => undefined;
    close = (): void => undefined;
  },
}));

/** The fake canvas's base64 characters per pixel, and the sizes it was given. */
let perPixel = 0;
let sizes: [number, number][] = [];

beforeEach(() => {
  installNetwork();
  sizes = [];
  vi.stubGlobal("createImageBitmap", async (source: { width?: number; height?: number }) => {
    if (source.width === undefined) {
      throw new TypeError("no image");
    }
    return source;
  });
  vi.spyOn(document, "createElement").mockImplementation((() => {
    const canvas = {
      width: 0,
      height: 0,
      getContext: () => ({ drawImage: () => void sizes.push([canvas.width, canvas.height]) }),
      toDataURL: () => `data:image/jpeg;base64,${"A".repeat(Math.round(canvas.width * canvas.height * perPixel))}`,
    };
    return canvas;
  }) as never);
});
afterEach(removeNetwork);

async function open(fields: Record<string, unknown>): Promise<{ session: VoiceSession; gateway: FakeWebSocket }> {
  const session = new VoiceSession({ url: "ws://gateway/v1/voice", microphone: false, keep: false });
  const opened = session.open();
  await settle();
  FakeWebSocket.last.start(fields);
  await opened;
  return { session, gateway: FakeWebSocket.last };
}

const isImage = (error: VoiceError): boolean => error instanceof VoiceError && error.code === "image";

test("an image is reduced to fit one message", async () => {
  const { session, gateway } = await open({ images: true });
  perPixel = 0.1;
  await session.sendImage({ width: 4096, height: 2048 } as ImageBitmap);
  assert.deepEqual(sizes, [[1024, 512]]);
  const { mime, data } = gateway.of("input.image")[0]!;
  assert.equal(mime, "image/jpeg");
  assert.equal(data.length, 52_429);
  perPixel = 0.2;
  sizes = [];
  await session.sendImage({ width: 1024, height: 1024 } as ImageBitmap);
  assert.ok(sizes.length > 1 && gateway.of("input.image")[1]!.data.length * 0.75 <= 45_056, JSON.stringify(sizes));
  void session.disconnect();
  gateway.drop(1000);
});

test("an unreadable image is an error", async () => {
  const { session, gateway } = await open({ images: true });
  perPixel = 0.01;
  await assert.rejects(session.sendImage(new Blob(["text"])), isImage);
  perPixel = 100;
  await assert.rejects(session.sendImage({ width: 500, height: 500 } as ImageBitmap), isImage);
  perPixel = 0.01;
  gateway.drop();
  await assert.rejects(session.sendImage({ width: 10, height: 10 } as ImageBitmap), isImage);
  assert.equal(gateway.of("input.image").length, 0);
  void session.disconnect();

  const blind = await open({});
  await assert.rejects(blind.session.sendImage({ width: 10, height: 10 } as ImageBitmap), isImage);
  void blind.session.disconnect();
  blind.gateway.drop(1000);
});

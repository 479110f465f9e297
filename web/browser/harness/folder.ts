import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sound } from "./signals.ts";
import { pcm16 } from "./signals.ts";
import { writeWav } from "./wav.ts";

const ends: (() => void)[] = [];

/** Registers a cleanup for the end of a test file. */
export function atEnd(cleanup: () => void): void {
  ends.push(cleanup);
}

/** Runs the cleanups; harness/cleanup.ts calls this, because Vitest kills its test processes. */
export function end(): void {
  ends.splice(0).reverse().forEach((cleanup) => cleanup());
}

/** Creates a folder that is removed after the test file. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "voicegw-browser-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a file for the microphone: seconds of a sound, mono at 16 kHz. */
export function recording(sound: Sound, seconds: number): string {
  const path = `${ownFolder()}/microphone.wav`;
  writeWav(path, 16000, [pcm16(sound, 16000, seconds)]);
  return path;
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sound } from "./signals.ts";
import { pcm16 } from "./signals.ts";
import { writeWav } from "./wav.ts";

const ends: (() => void)[] = [];

/** Does something when the tests of a file are over, however they ended. */
export function atEnd(deed: () => void): void {
  ends.push(deed);
}

/** Does it; harness/cleanup.ts calls this. A process of tests is killed when they are over: it has no end of its own. */
export function end(): void {
  ends.splice(0).reverse().forEach((deed) => deed());
}

/** A folder of a test's own. It goes when the tests of the file are over. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "voicegw-browser-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A file for the microphone, mono at 16 kHz: seconds of a sound. */
export function recording(sound: Sound, seconds: number): string {
  const path = `${ownFolder()}/microphone.wav`;
  writeWav(path, 16000, [pcm16(sound, 16000, seconds)]);
  return path;
}

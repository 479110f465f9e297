// PCM16 WAV files, which Chromium plays as its microphone.
import { readFileSync, writeFileSync } from "node:fs";

/** Writes channels of the same length; rate in Hz. */
export function writeWav(path: string, rate: number, channels: readonly Int16Array[]): void {
  const width = 2 * channels.length;
  const size = width * (channels[0]?.length ?? 0);
  const file = Buffer.alloc(44 + size);
  file.write("RIFF", 0);
  file.writeUInt32LE(36 + size, 4);
  file.write("WAVEfmt ", 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(channels.length, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate * width, 28);
  file.writeUInt16LE(width, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36);
  file.writeUInt32LE(size, 40);
  channels.forEach((channel, c) => channel.forEach((x, i) => file.writeInt16LE(x, 44 + i * width + 2 * c)));
  writeFileSync(path, file);
}

export function readWav(path: string): { rate: number; channels: Int16Array[] } {
  const file = readFileSync(path);
  let rate = 0;
  let count = 0;
  for (let at = 12; at + 8 <= file.length; ) {
    const name = file.toString("latin1", at, at + 4);
    const size = file.readUInt32LE(at + 4);
    if (name === "fmt ") {
      if (file.readUInt16LE(at + 22) !== 16) {
        throw new Error(`${path}: only PCM16 is read here`);
      }
      count = file.readUInt16LE(at + 10);
      rate = file.readUInt32LE(at + 12);
    }
    if (name === "data") {
      const sample = (i: number, channel: number) => file.readInt16LE(at + 8 + 2 * (i * count + channel));
      return { rate, channels: Array.from({ length: count }, (_, channel) => Int16Array.from({ length: size / (2 * count) }, (_, i) => sample(i, channel))) };
    }
    at += 8 + size + (size % 2);
  }
  throw new Error(`${path}: holds no samples`);
}

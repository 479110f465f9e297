// WAV files: RIFF with 16-bit PCM, as in Microsoft's "Multimedia Programming Interface and Data
// Specifications 1.0", chapter 3 (WAVE).

const HEADER = 44;
const PCM = 1;

/** A WAV file with channels of equal length. Rate in Hz. */
export function wavFile(channels: readonly Int16Array[], rate: number): ArrayBuffer {
  const samples = new Uint8Array(interleaved(channels));
  const file = new Uint8Array(HEADER + samples.length);
  file.set(new Uint8Array(wavHeader(channels.length, channels[0]?.length ?? 0, rate)));
  file.set(samples, HEADER);
  return file.buffer;
}

/** The header for a number of frames. Rate in Hz. */
export function wavHeader(channels: number, frames: number, rate: number): ArrayBuffer {
  const frameBytes = 2 * channels;
  const header = new ArrayBuffer(HEADER);
  const view = new DataView(header);
  const word = (at: number, text: string): void => {
    for (let i = 0; i < 4; i++) {
      view.setUint8(at + i, text.charCodeAt(i));
    }
  };
  word(0, "RIFF");
  view.setUint32(4, HEADER + frames * frameBytes - 8, true);
  word(8, "WAVE");
  word(12, "fmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, frames * frameBytes, true);
  return header;
}

/** Interleaves the samples of channels of equal length. */
export function interleaved(channels: readonly Int16Array[]): ArrayBuffer {
  const frames = channels[0]?.length ?? 0;
  if (channels.some(({ length }) => length !== frames)) {
    throw new RangeError("wav: the channels differ in length");
  }
  const bytes = new ArrayBuffer(2 * channels.length * frames);
  const view = new DataView(bytes);
  channels.forEach((channel, c) => {
    for (let i = 0; i < frames; i++) {
      view.setInt16(2 * (i * channels.length + c), channel[i]!, true);
    }
  });
  return bytes;
}

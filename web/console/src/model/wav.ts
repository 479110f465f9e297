// WAV files: RIFF with 16-bit PCM. The format is Microsoft's "Multimedia Programming
// Interface and Data Specifications 1.0", chapter 3 (WAVE).

const HEADER = 44;
const PCM = 1;

/** A WAV file of one channel or more, which must be equally long. Rate in Hz. */
export function wavFile(channels: readonly Int16Array[], rate: number): ArrayBuffer {
  const frames = channels[0]?.length ?? 0;
  if (channels.some(({ length }) => length !== frames)) {
    throw new RangeError("wav: the channels differ in length");
  }
  const frameBytes = 2 * channels.length;
  const file = new ArrayBuffer(HEADER + frames * frameBytes);
  const view = new DataView(file);
  const word = (at: number, text: string): void => {
    for (let i = 0; i < 4; i++) {
      view.setUint8(at + i, text.charCodeAt(i));
    }
  };
  word(0, "RIFF");
  view.setUint32(4, file.byteLength - 8, true);
  word(8, "WAVE");
  word(12, "fmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, channels.length, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, frames * frameBytes, true);
  channels.forEach((channel, c) => {
    for (let i = 0; i < frames; i++) {
      view.setInt16(HEADER + i * frameBytes + 2 * c, channel[i]!, true);
    }
  });
  return file;
}

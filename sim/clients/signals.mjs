// Sounds for the tests, as 16-bit little-endian mono PCM.

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// speech returns ms of sound that a detector takes for one utterance: syllables of 180 ms, each a train of pulses at a
// gliding pitch of about 120 Hz through two resonances, with dips of 40 ms between them.
export function speech(rate, ms) {
  const out = new Float64Array(Math.floor((rate * ms) / 1000));
  const syllable = Math.floor(rate * 0.18);
  const dip = Math.floor(rate * 0.04);
  const vowels = [[700, 1200], [300, 2200], [400, 800], [550, 1800]];
  for (let begin = 0, n = 0; begin < out.length; begin += syllable + dip, n++) {
    const end = Math.min(begin + syllable, out.length);
    const resonances = vowels[n % vowels.length].map((hz) => resonance(rate, hz, 100));
    for (let i = begin, phase = 1; i < end; i++) {
      const at = (i - begin) / syllable;
      phase += (130 - 20 * at) / rate;
      const pulse = phase >= 1 ? 1 : 0;
      phase -= pulse;
      const envelope = Math.min(1, at * 8, (1 - at) * 8);
      out[i] = envelope * resonances.reduce((sum, filter) => sum + filter(pulse), 0);
    }
  }
  return pcm(out, 0.5);
}

// resonance is a filter with two poles: a peak at hz with this width.
function resonance(rate, hz, width) {
  const r = Math.exp((-Math.PI * width) / rate);
  const a = 2 * r * Math.cos((2 * Math.PI * hz) / rate);
  let one = 0;
  let two = 0;
  return (x) => {
    const y = x + a * one - r * r * two;
    two = one;
    one = y;
    return y;
  };
}

// pcm scales samples to this peak, as a part of full scale.
function pcm(samples, peak) {
  const loudest = samples.reduce((max, x) => Math.max(max, Math.abs(x)), 0) || 1;
  const out = Buffer.alloc(2 * samples.length);
  samples.forEach((x, i) => out.writeInt16LE(Math.round((32767 * peak * x) / loudest), 2 * i));
  return out;
}

export function silence(rate, ms) {
  return Buffer.alloc(2 * Math.floor((rate * ms) / 1000));
}

// utterance is speech between silences, the last of which ends the turn.
export function utterance(rate, ms = 1200) {
  return Buffer.concat([silence(rate, 300), speech(rate, ms), silence(rate, 1500)]);
}

// ulaw encodes PCM as G.711 mu-law (ITU-T G.711, table 2a): for each sample a byte of sign, exponent and mantissa, inverted.
export function ulaw(audio) {
  const out = Buffer.alloc(audio.length / 2);
  for (let i = 0; i < out.length; i++) {
    const sample = audio.readInt16LE(2 * i);
    const magnitude = Math.min(Math.abs(sample), 32635) + 132;
    const exponent = Math.floor(Math.log2(magnitude)) - 7;
    const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
    out[i] = ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa);
  }
  return out;
}

// chunks divides PCM into chunks of ms, as from a microphone.
export function* chunks(audio, rate, ms = 100) {
  const size = 2 * Math.floor((rate * ms) / 1000);
  for (let at = 0; at < audio.length; at += size) {
    yield audio.subarray(at, at + size);
  }
}

// durationMS returns the duration of PCM.
export function durationMS(bytes, rate) {
  return (bytes / 2 / rate) * 1000;
}

// loudness returns the root mean square of PCM as a part of full scale.
export function loudness(audio) {
  let sum = 0;
  for (let i = 0; i + 1 < audio.length; i += 2) {
    sum += (audio.readInt16LE(i) / 32768) ** 2;
  }
  return audio.length < 2 ? 0 : Math.sqrt(sum / (audio.length / 2));
}

// recordings returns the 16-bit mono WAV files of ../shared/audio as {name, rate, audio}; none without the folder.
export function recordings() {
  const folder = join(dirname(fileURLToPath(import.meta.url)), '../../../shared/audio');
  if (!existsSync(folder)) {
    return [];
  }
  return readdirSync(folder)
    .filter((name) => name.endsWith('.wav'))
    .map((name) => ({ name, ...wav(readFileSync(join(folder, name))) }))
    .filter((r) => r.plain);
}

// wav reads the chunks of a RIFF file.
function wav(file) {
  const found = { rate: 0, plain: false, audio: Buffer.alloc(0) };
  for (let at = 12; at + 8 <= file.length; ) {
    const id = file.toString('latin1', at, at + 4);
    const size = file.readUInt32LE(at + 4);
    const body = file.subarray(at + 8, at + 8 + size);
    if (id === 'fmt ') {
      found.rate = body.readUInt32LE(4);
      found.plain = body.readUInt16LE(0) === 1 && body.readUInt16LE(2) === 1 && body.readUInt16LE(14) === 16;
    }
    if (id === 'data') {
      found.audio = body;
    }
    at += 8 + size + (size & 1);
  }
  return found;
}

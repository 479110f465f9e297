// Package voice is a small text-to-speech synthesizer for English: text in,
// PCM16 and word times out. The provider simulator answers with it, so that a
// person hears understandable speech with nothing installed and no network.
//
// The same text and options give the same bytes on every run of the same binary.
// Nothing but Go is needed.
//
// A text goes through these steps, each in the files named:
//
//   - written words become spoken ones: whole numbers, names of letters and signs
//     (tokens.go, normalize.go, numbers.go);
//   - spoken words become phones: lexicon.txt first, then rules.txt and a stress rule
//     (dictionary.go, rules.go, stress.go);
//   - phones get variants, pauses, durations and pitch (prosody.go, duration.go, tune.go);
//   - they become frames of formants and sources (phones.go, track.go, excite.go);
//   - a glottis, a cascade of formants, a nose and bands of noise turn frames into
//     sound (source.go, synth.go, filter.go, noise.go), which is
//     levelled (level.go) and resampled by package audio.
//
// Scripts other than Latin are silent. Words neither in the lexicon nor regular may
// be mispronounced: add them to lexicon.txt.
package voice

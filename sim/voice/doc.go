// Package voice is a small text-to-speech synthesizer for English: text in,
// PCM16 and word times out. The provider simulator answers with it, so that a
// person hears understandable speech with nothing installed and no network.
//
// The same text and options give the same bytes on every run of the same binary.
// Everything is pure Go and standard library.
//
// A text goes through these steps, each in the files named:
//
//   - written words become spoken ones: numbers, dates, money, addresses, letters
//     (tokens.go, normalize.go, numbers.go, calendar.go, quantities.go, spell.go);
//   - spoken words become phones: lexicon.txt first, then endings, then rules.txt
//     and a stress rule (dictionary.go, endings.go, rules.go, stress.go);
//   - phones get variants, pauses, durations and pitch (prosody.go, duration.go, tune.go);
//   - they become frames of formants and sources (phones.go, track.go, excite.go);
//   - a glottis, a cascade of formants, a nose and bands of noise turn frames into
//     sound (source.go, synth.go, filter.go, noise.go), which is
//     resampled and levelled (resample.go, level.go).
//
// Scripts other than Latin are silent. Words neither in the lexicon nor regular may
// be mispronounced: add them to lexicon.txt.
package voice

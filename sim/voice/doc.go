// Package voice is a small text-to-speech synthesizer for English: text in, PCM16 and word times out. The same text and
// options give the same bytes on every run of the same binary.
//
// Written words become spoken ones (tokens.go, normalize.go, numbers.go), and phones by lexicon.txt, else by rules.txt and
// a stress rule (dictionary.go, rules.go, stress.go). Phones get variants, pauses, durations and pitch (prosody.go,
// duration.go, tune.go), and become frames of formants and sources (phones.go, track.go, excite.go), then sound (source.go,
// synth.go, filter.go, noise.go), which is levelled (level.go) and resampled by package audio.
//
// Scripts other than Latin are silent. Words that are mispronounced belong in lexicon.txt.
package voice

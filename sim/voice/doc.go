// Package voice is a small text-to-speech synthesizer for English: text in,
// PCM16 and word times out. The provider simulator answers with it, so that a
// person hears understandable speech with nothing installed and no network.
//
// The same text and options give the same bytes on every run. Everything is
// pure Go and standard library.
package voice

// Package cost turns the tokens that a model has used into money: micro-dollars, by a dated table
// of prices. It is pure: no clock, no I/O.
//
// A model without a price, or a kind of token without one, is unpriced. That is not the same as
// free: an [Amount] counts what could not be priced beside the money that could.
package cost

import (
	"fmt"
	"math"

	"voicegw/transport"
)

// Micros is money in micro-dollars: 1,000,000 are one US dollar.
type Micros int64

// String returns the money in dollars with all six decimals, such as "$0.012300".
func (m Micros) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s$%d.%06d", sign, n/1e6, n%1e6)
}

// Dollars returns the money in dollars, for metrics and charts. Sums are made of Micros.
func (m Micros) Dollars() float64 { return float64(m) / 1e6 }

// Plus returns the sum, and the largest or smallest amount where the sum would be beyond it.
func (m Micros) Plus(n Micros) Micros {
	sum := m + n
	switch {
	case n > 0 && sum < m:
		return math.MaxInt64
	case n < 0 && sum > m:
		return math.MinInt64
	}
	return sum
}

// Amount is what usages have cost. Its JSON form stands in the store and in messages to clients.
type Amount struct {
	// Micros is what those have cost whose price is known.
	Micros Micros `json:"micros"`
	// Unpriced is the number of usages whose price is not known.
	Unpriced int64 `json:"unpriced,omitempty"`
	// Estimated is the number of usages that no model has reported, and that were estimated.
	Estimated int64 `json:"estimated,omitempty"`
}

// Plus returns the sum of a and b.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Micros: a.Micros.Plus(b.Micros), Unpriced: a.Unpriced + b.Unpriced, Estimated: a.Estimated + b.Estimated}
}

// Minus returns a without b.
func (a Amount) Minus(b Amount) Amount {
	return a.Plus(Amount{Micros: -b.Micros, Unpriced: -b.Unpriced, Estimated: -b.Estimated})
}

// mostTokens bounds each kind of token of one usage, so that no product of the calculation
// overflows: eight kinds, each with this many tokens at mostPrice, fit into 63 bits.
const mostTokens = 1_000_000_000

// Usage counts the tokens of one usage, by what they are charged as. Unlike in transport.Tokens no
// token is counted twice: input that the provider had cached is counted as cached alone.
type Usage struct {
	InputText   int64 `json:"input_text,omitempty"`
	InputAudio  int64 `json:"input_audio,omitempty"`
	InputImage  int64 `json:"input_image,omitempty"`
	CachedText  int64 `json:"cached_text,omitempty"`
	CachedAudio int64 `json:"cached_audio,omitempty"`
	CachedImage int64 `json:"cached_image,omitempty"`
	OutputText  int64 `json:"output_text,omitempty"`
	OutputAudio int64 `json:"output_audio,omitempty"`
}

// Plus returns the sum of u and v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		InputText: u.InputText + v.InputText, InputAudio: u.InputAudio + v.InputAudio, InputImage: u.InputImage + v.InputImage,
		CachedText: u.CachedText + v.CachedText, CachedAudio: u.CachedAudio + v.CachedAudio, CachedImage: u.CachedImage + v.CachedImage,
		OutputText: u.OutputText + v.OutputText, OutputAudio: u.OutputAudio + v.OutputAudio,
	}
}

// Minus returns u without v.
func (u Usage) Minus(v Usage) Usage {
	return u.Plus(Usage{
		InputText: -v.InputText, InputAudio: -v.InputAudio, InputImage: -v.InputImage,
		CachedText: -v.CachedText, CachedAudio: -v.CachedAudio, CachedImage: -v.CachedImage,
		OutputText: -v.OutputText, OutputAudio: -v.OutputAudio,
	})
}

// UsageOf returns what t is charged as.
//
// Cached tokens are a part of the input of their modality and are taken out of it. Gemini's totals
// are larger than the sum of their parts (25 to 51 tokens a turn were seen with 3.8 Live:
// discuss.ai.google.dev/t/188765, read 2026-11-25): what a provider attributes to no modality counts
// as text, and so do the thoughts, which both providers charge as text output. Images, video and
// documents count as images.
func UsageOf(t transport.Tokens) Usage {
	text, audio, other := whole(t.InputText), whole(t.InputAudio), whole(t.InputOther)
	outText, outAudio := whole(t.OutputText), whole(t.OutputAudio)
	text = whole(text + max(whole(t.Input)-text-audio-other, 0))
	outText = whole(outText + max(whole(t.Output)-outText-outAudio, 0) + whole(t.OutputThought))
	u := Usage{
		CachedText: min(whole(t.CachedText), text), CachedAudio: min(whole(t.CachedAudio), audio),
		InputImage: other, OutputText: outText, OutputAudio: outAudio,
	}
	u.InputText, u.InputAudio = text-u.CachedText, audio-u.CachedAudio
	return u
}

// whole bounds a number of tokens: a provider may send anything.
func whole(n int64) int64 { return min(max(n, 0), mostTokens) }

// IsZero reports whether no token was used.
func (u Usage) IsZero() bool { return u == Usage{} }

// Sum is what somebody has used in a time. Its JSON form stands in the store.
type Sum struct {
	Amount
	// Sessions is the number of voice sessions that began, Turns that of turns by voice and text
	// that ended.
	Sessions int64 `json:"sessions,omitempty"`
	Turns    int64 `json:"turns,omitempty"`
	// VoiceMS is how long voice sessions lasted, in ms.
	VoiceMS int64 `json:"voice_ms,omitempty"`
	Tokens  Usage `json:"tokens"`
}

// Plus returns the sum of s and t.
func (s Sum) Plus(t Sum) Sum {
	return Sum{
		Amount: s.Amount.Plus(t.Amount), Sessions: s.Sessions + t.Sessions, Turns: s.Turns + t.Turns,
		VoiceMS: s.VoiceMS + t.VoiceMS, Tokens: s.Tokens.Plus(t.Tokens),
	}
}

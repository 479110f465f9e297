package cost

import (
	"time"

	"voicegw/transport"
)

// Talk is the amount of a conversation.
type Talk struct {
	// Heard is the user's speech, Spoken the model's.
	Heard, Spoken time.Duration
	// Read is text for the model, Written text by the model, in bytes.
	Read, Written int64
}

// Plus returns t + u.
func (t Talk) Plus(u Talk) Talk {
	return Talk{Heard: t.Heard + u.Heard, Spoken: t.Spoken + u.Spoken, Read: t.Read + u.Read, Written: t.Written + u.Written}
}

// The assumptions for one token: a tenth of a second of user speech, a twentieth of model speech
// (developers.openai.com/api/docs/guides/realtime-costs, read 2026-11-25), and four bytes of text, as in English; other
// languages have fewer.
const (
	heardPerToken  = 100 * time.Millisecond
	spokenPerToken = 50 * time.Millisecond
	bytesPerToken  = 4
)

// Estimate estimates the tokens of the current exchange for a model that reports none. Models read the whole
// conversation for each answer, so everything before counts as uncached input: the estimate tends to be high. It is zero
// if the model has said nothing.
func Estimate(before, now Talk) transport.Tokens {
	per := func(d, token time.Duration) int64 { return int64((d + token - 1) / token) }
	text := func(bytes int64) int64 { return (bytes + bytesPerToken - 1) / bytesPerToken }
	t := transport.Tokens{OutputText: text(now.Written), OutputAudio: per(now.Spoken, spokenPerToken)}
	if t.Output = t.OutputText + t.OutputAudio; t.Output == 0 {
		return transport.Tokens{}
	}
	t.InputText = text(before.Read + before.Written + now.Read)
	t.InputAudio = per(before.Heard+now.Heard, heardPerToken) + per(before.Spoken, spokenPerToken)
	t.Input = t.InputText + t.InputAudio
	return t
}

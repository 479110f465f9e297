package talk

import (
	"time"

	"voicegw/protocol"
)

// Report is what a conversation came to.
type Report struct {
	SessionID  string `json:"session_id"`
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	InputRate  int    `json:"input_rate"`
	OutputRate int    `json:"output_rate"`
	// Turns are in the order they were said; with a repeated turn as interruption, and
	// with something asked before, there is one more than in Options.
	Turns []TurnReport `json:"turns"`
	// Usage is that of all turns.
	Usage protocol.Usage `json:"usage"`
	// StaleBytes of audio came that belonged to no item: after a flush, for one. It
	// must be zero.
	StaleBytes int64 `json:"stale_bytes"`
	// Underruns counts how often the audio of an answer came too late to be played
	// without a gap.
	Underruns int `json:"underruns"`
	// Handback is there if the session has gone on with a conversation of text.
	Handback *protocol.Handback `json:"handback,omitempty"`
	// Audio is what was heard at OutputRate, answers one after another, if
	// Options.KeepAudio; at most maxHeardBytes.
	Audio []byte `json:"-"`
}

// TurnReport is what one turn came to. Times are in ms.
type TurnReport struct {
	Name  string `json:"name,omitempty"`
	Typed bool   `json:"typed,omitempty"`
	// Pending says that it was asked before the session, which a ticket has opened.
	Pending bool `json:"pending,omitempty"`
	// Answered says that the answer was heard, or was interrupted as asked; Reason
	// says why not.
	Answered bool   `json:"answered"`
	Reason   string `json:"reason,omitempty"`
	// Said and Answer are the transcripts of both sides.
	Said   string `json:"said,omitempty"`
	Answer string `json:"answer,omitempty"`
	// FirstAudioMS is from the last voiced sample sent (or the text) to the first
	// audio byte of the answer; absent if none came.
	FirstAudioMS *int64 `json:"first_audio_ms,omitempty"`
	// AnswerMS is the length of the audio that came, HeardMS of what was played.
	AnswerMS int64 `json:"answer_ms"`
	HeardMS  int64 `json:"heard_ms"`
	// Interruption is there if the answer to this turn was interrupted.
	Interruption *Interruption `json:"interruption,omitempty"`
	// Latency is what the gateway measured.
	Latency *protocol.Latency `json:"latency,omitempty"`
	Usage   protocol.Usage    `json:"usage"`
}

// Interruption is how fast an answer stopped, in ms from the first voiced sample
// of the interrupting speech (or the text) sent.
type Interruption struct {
	// FlushMS is to the audio.flush; absent if none came.
	FlushMS *int64 `json:"flush_ms,omitempty"`
	// LastAudioMS is to the last audio byte of the interrupted answer; 0 if all of
	// it had come before.
	LastAudioMS int64 `json:"last_audio_ms"`
}

// between returns the ms from one instant to another, or nil if one of them never
// was.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := max(to.Sub(from), 0).Milliseconds()
	return &ms
}

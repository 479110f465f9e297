package talk

import (
	"time"

	"voicegw/protocol"
)

// Report is the result of a conversation.
type Report struct {
	SessionID  string `json:"session_id"`
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	InputRate  int    `json:"input_rate"`
	OutputRate int    `json:"output_rate"`
	// Turns are in order. A pending request, and a turn repeated as an interruption, each add one to those of
	// Options.
	Turns []TurnReport   `json:"turns"`
	Usage protocol.Usage `json:"usage"`
	// StaleBytes of audio belonged to no item, as after a flush. It must be zero.
	StaleBytes int64 `json:"stale_bytes"`
	// Underruns counts the gaps in answers caused by late audio.
	Underruns int `json:"underruns"`
	// Handback is set if the session continued a text conversation.
	Handback *protocol.Handback `json:"handback,omitempty"`
	// Audio is the audio heard, at OutputRate, with Options.KeepAudio; at most maxHeardBytes.
	Audio []byte `json:"-"`
}

// TurnReport is the result of one turn. Times are in ms.
type TurnReport struct {
	Name  string `json:"name,omitempty"`
	Typed bool   `json:"typed,omitempty"`
	// Pending means that it is the pending request of a ticket.
	Pending bool `json:"pending,omitempty"`
	// Answered means that the answer was heard or interrupted as requested; otherwise Reason explains why not.
	Answered bool   `json:"answered"`
	Reason   string `json:"reason,omitempty"`
	Said     string `json:"said,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// FirstAudioMS is the time from the last voiced sample sent (or the text) to the first audio byte of the answer;
	// absent without one.
	FirstAudioMS *int64 `json:"first_audio_ms,omitempty"`
	// AnswerMS is the audio received, HeardMS the audio played.
	AnswerMS     int64             `json:"answer_ms"`
	HeardMS      int64             `json:"heard_ms"`
	Interruption *Interruption     `json:"interruption,omitempty"`
	Latency      *protocol.Latency `json:"latency,omitempty"`
	Usage        protocol.Usage    `json:"usage"`
}

// Interruption has the times to stop an answer, in ms from the first voiced sample (or the text) of the interruption.
type Interruption struct {
	// FlushMS is the time to audio.flush; absent without one.
	FlushMS *int64 `json:"flush_ms,omitempty"`
	// LastAudioMS is the time to the last audio byte of the interrupted answer; 0 if all of it had arrived before.
	LastAudioMS int64 `json:"last_audio_ms"`
}

// between returns the ms between two times; nil if either is zero.
func between(from, to time.Time) *int64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := max(to.Sub(from), 0).Milliseconds()
	return &ms
}

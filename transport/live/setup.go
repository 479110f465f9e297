package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"voicegw/internal/livewire"
	"voicegw/prompts"
	"voicegw/transport"
)

const (
	// historyTokens is less than livewire.MaxInputTokens, and appendTokens than MaxAppendTokens, because both count with an
	// estimate: JSON has more tokens for its length than prose.
	historyTokens = livewire.MaxInputTokens * 7 / 10
	appendTokens  = livewire.MaxAppendTokens * 7 / 10
)

// startFrame encodes session.start, which has no field that the provider does not know.
func startFrame(setup transport.Setup) ([]byte, error) {
	s := livewire.Session{Model: setup.Model, Delegation: &livewire.Delegation{Type: livewire.DelegateToClient}, Input: history(setup)}
	s.Audio.Format = livewire.Format{Type: "audio/pcm", Rate: sampleRate}
	if s.Audio.Output.Voice.Name = setup.Voice; setup.Voice == "" {
		s.Audio.Output.Voice.Name = livewire.DefaultVoice
	}
	words := []string{setup.Instructions, prompts.VoiceOnly}
	if setup.Language != "" {
		words = append(words, prompts.SpeakLanguage(setup.Language))
	}
	s.Instructions = strings.TrimSpace(strings.Join(words, "\n\n"))
	if n := livewire.Tokens(s.Instructions); n > livewire.MaxInstructionTokens {
		return nil, fmt.Errorf("the instructions are longer than the model allows: shorten the agent's: about %d tokens of %d",
			n, livewire.MaxInstructionTokens)
	}
	session, err := json.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("encode the session: %w", err)
	}
	return livewire.ClientEvent{Type: livewire.Start, ID: "start", Session: session}.Encode() //nolint:wrapcheck // it names the event
}

// history returns the newest part of the past that fits, and how much is missing. It is nil without any.
func history(setup transport.Setup) []livewire.Message {
	var last []livewire.Message
	if setup.Reanchor != "" {
		last = append(last, livewire.NewMessage("developer", setup.Reanchor))
	}
	if len(setup.History) == 0 {
		return last
	}
	room := historyTokens - livewire.NewMessage("", prompts.HistoryCut(len(setup.History))).Tokens()
	for _, m := range last {
		room -= m.Tokens()
	}
	most := livewire.MaxMessages - len(last) - 1
	var kept []livewire.Message // the newest first
	for _, p := range slices.Backward(setup.History) {
		role, text := entry(p)
		if text == "" {
			continue
		}
		m := livewire.NewMessage(role, text)
		if len(kept) == 0 && m.Tokens() > room {
			m = livewire.NewMessage(role, livewire.Split(text, room-8)[0])
		}
		if room -= m.Tokens(); room < 0 || len(kept) == most {
			break
		}
		kept = append(kept, m)
	}
	if missing := len(setup.History) - len(kept); missing > 0 {
		kept = append(kept, livewire.NewMessage("developer", prompts.HistoryCut(missing)))
	}
	slices.Reverse(kept)
	return append(kept, last...)
}

// entry returns the role and the words of an entry of the history.
func entry(p transport.Past) (role, text string) {
	switch p := p.(type) {
	case transport.PastUser:
		return "user", p.Text
	case transport.PastAssistant:
		if p.Interrupted {
			return "assistant", p.Text + prompts.Interrupted
		}
		return "assistant", p.Text
	case transport.PastTool:
		return "developer", prompts.EarlierCall(p.Name, string(p.Args), string(p.Output))
	case transport.PastNote:
		return "developer", p.Text
	}
	return "developer", ""
}

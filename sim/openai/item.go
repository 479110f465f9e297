package openai

import (
	"cmp"
	"strings"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
)

type item struct {
	openaiwire.Item

	answered bool
	// audio is the item's encoded audio in the given format; it is cut or dropped if too much is
	// held. length is its original length.
	audio  []byte
	cut    bool
	format openaiwire.Format
	length time.Duration
	// spoken is the length of the speech in a user's audio; told means that the client also sent its words.
	spoken time.Duration
	told   bool
	heard  string
	// cutWords are about the words that are left of the assistant's truncated speech.
	cutWords string
}

// memory is the item as the model remembers it; call is the name of the tool that a result is
// of. It returns false for items that say nothing.
func (it *item) memory(call string) (scenario.Memory, bool) {
	m := scenario.Memory{Who: it.Role}
	switch it.Type {
	case openaiwire.Message:
		m.Text = cmp.Or(it.Words(), it.heard, it.cutWords)
		if it.Role == "assistant" {
			m.Who = "model"
		}
	case openaiwire.FunctionCall:
		m.Who, m.Text = "call", it.Name+" "+it.Arguments
	case openaiwire.FunctionOutput:
		m.Who, m.Text = "result", call+" "+it.Output
	}
	return m, m.Who != "" && m.Text != ""
}

// truncated estimates the words in the first part of a speech from its length: the model itself hears only the
// remaining sound.
func truncated(words string, part, whole time.Duration) string {
	all := strings.Fields(words)
	if whole <= 0 || part >= whole {
		return words
	}
	return strings.Join(all[:int(int64(len(all))*int64(part)/int64(whole))], " ")
}

// itemOf is an item of the client, whose audio is in the format of the session's input.
func itemOf(wire *openaiwire.Item, in openaiwire.Format) *item {
	it := &item{Item: *wire, format: in}
	for i := range it.Content {
		c := &it.Content[i]
		if c.Type != "input_audio" {
			continue
		}
		it.audio, c.Audio = c.Audio, nil
		it.length = time.Duration(len(it.audio)/in.BytesPerMS()) * time.Millisecond
		it.spoken, it.told = it.length, it.told || c.Transcript != nil
	}
	return it
}

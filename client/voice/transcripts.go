package voice

import "strings"

// Transcripts are the texts of one side, by id, in order of their beginning.
type Transcripts []transcript

type transcript struct{ id, text string }

// maxTranscripts bounds the texts of one side of an exchange.
const maxTranscripts = 100

// set replaces a transcript with its newest full text.
func (t *Transcripts) set(id, text string) {
	for i := range *t {
		if (*t)[i].id == id {
			(*t)[i].text = text
			return
		}
	}
	if len(*t) < maxTranscripts {
		*t = append(*t, transcript{id, text})
	}
}

// String joins all texts.
func (t Transcripts) String() string {
	var parts []string
	for _, one := range t {
		parts = append(parts, one.text)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

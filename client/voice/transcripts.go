package voice

import "strings"

// Transcripts are the texts of one side, by id, in the order they began.
type Transcripts []transcript

type transcript struct{ id, text string }

// maxTranscripts bounds what is kept of one side of an exchange.
const maxTranscripts = 100

// set takes a transcript: the whole text so far.
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

// String is all of it.
func (t Transcripts) String() string {
	var parts []string
	for _, one := range t {
		parts = append(parts, one.text)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

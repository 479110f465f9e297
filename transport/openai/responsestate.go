package openai

import (
	"slices"
	"strconv"
	"strings"
)

// responseState is the caller's view of the responses. It is owned by Recv.
type responseState struct {
	answering string   // the response that was reported as started and not yet as done
	lastDone  string   // the response that ended last
	thinks    bool     // the response has an item of reasoning, and nothing newer
	unnamed   int      // responses to which the provider gave no id
	muted     []string // responses whose later events are hidden from the caller, oldest first
}

// unnamedPrefix is the prefix of made-up ids, for responses without a readable id from the provider.
const unnamedPrefix = "unnamed_"

func (r *responseState) start(id string) string {
	if id == "" {
		r.unnamed++
		id = unnamedPrefix + strconv.Itoa(r.unnamed)
	}
	r.answering = id
	return id
}

// endOf returns the response that a response.done ends: its id for the caller, and the id that the provider used when
// it began. An unreadable id, here or there, means the active response.
func (r *responseState) endOf(id string) (reported, began string) {
	switch unnamed := strings.HasPrefix(r.answering, unnamedPrefix); {
	case unnamed:
		return r.answering, ""
	case id == "":
		return r.answering, r.answering
	default:
		return id, id
	}
}

func (r *responseState) mute(id string) {
	if len(r.muted) == maxMuted {
		r.muted = slices.Delete(r.muted, 0, 1)
	}
	r.muted = append(r.muted, id)
}

func (r *responseState) isMuted(id string) bool {
	return len(r.muted) > 0 && slices.Contains(r.muted, id)
}

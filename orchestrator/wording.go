package orchestrator

import (
	"slices"
	"strings"
)

// wording is what the user said or typed in a turn, to repeat it on a new connection. It is immutable.
type wording struct {
	turn  int
	parts []utteredText // in the order of their beginning
}

// utteredText is the text of one item.
type utteredText struct{ item, text string }

// maxWording limits the words, in bytes. A longer request is not repeated; the model is asked to continue with it.
const maxWording = 32 << 10

// with returns the words including all of an item so far. Words of an older turn are ignored, and those of a newer one
// replace the others. w may be nil.
func (w *wording) with(turn int, item, text string) *wording {
	if strings.TrimSpace(text) == "" || w != nil && turn < w.turn {
		return w
	}
	next := &wording{turn: turn}
	if w != nil && turn == w.turn {
		next.parts = slices.Clone(w.parts)
	}
	at := slices.IndexFunc(next.parts, func(p utteredText) bool { return p.item == item })
	if at < 0 {
		next.parts = append(next.parts, utteredText{item, text})
	} else {
		next.parts[at].text = text
	}
	return next
}

// of returns the words of a turn; empty if unknown.
func (w *wording) of(turn int) string {
	if w == nil || turn != w.turn {
		return ""
	}
	if len(w.parts) == 1 && len(w.parts[0].text) <= maxWording {
		return w.parts[0].text
	}
	var words []string
	length := 0
	for _, p := range w.parts {
		words = append(words, strings.TrimSpace(p.text))
		length += len(p.text)
	}
	if length > maxWording {
		return ""
	}
	return strings.Join(words, " ")
}

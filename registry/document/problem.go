package document

import (
	"slices"
	"strings"
)

// Problem is one error in a document that a person wrote or a build made.
type Problem struct {
	// Path is a JSON pointer (RFC 6901) into the document; empty means the whole document.
	Path string `json:"path"`
	// Message says in a sentence or two what is wrong, why, and how to fix it.
	Message string `json:"message"`
}

// SortProblems sorts by path and removes repeats.
func SortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(problems)
}

// String returns the path and the message on one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

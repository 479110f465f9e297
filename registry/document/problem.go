package document

import (
	"slices"
	"strings"
)

// Problem is an error in a document.
type Problem struct {
	// Path is a JSON Pointer (RFC 6901); empty means the whole document.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// SortProblems sorts by path and removes duplicates.
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

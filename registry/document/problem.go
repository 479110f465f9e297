package document

import (
	"cmp"
	"slices"
	"strings"
)

// Problem is an error in a document.
type Problem struct {
	// Path is a JSON Pointer (RFC 6901); empty means the whole document.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Under returns the problems of a part of a document at its place.
func Under(place Pointer, problems []Problem) []Problem {
	all := make([]Problem, len(problems))
	for i, p := range problems {
		all[i] = Problem{Path: place.String() + p.Path, Message: p.Message}
	}
	return all
}

// SortProblems sorts by path and removes duplicates.
func SortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
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

package adapter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one reason why a schema has no form.
type Problem struct {
	// Path is the JSON pointer (RFC 6901) of the schema at fault, inside the canonical
	// parameters; "" is their root.
	Path string `json:"path"`
	// Keyword is the JSON Schema keyword at fault, or "" for the text as a whole.
	Keyword string `json:"keyword"`
	// Message says what is wrong, why, and how to fix it.
	Message string `json:"message"`
}

// String returns path, keyword and message on one line.
func (p Problem) String() string {
	where := cmp.Or(p.Path, "(root)")
	if p.Keyword == "" {
		return where + ": " + p.Message
	}
	return where + ": " + p.Keyword + ": " + p.Message
}

// Problems is the error of every function in this package: everything that is wrong, sorted
// by path, keyword and message, without repeats. Extract it with [errors.As].
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p)+1)
	lines = append(lines, fmt.Sprintf("the tool's parameters have %d problem(s)", len(p)))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n\t")
}

// sorted puts problems in their documented order and drops repeats: an inlined
// definition is visited once for each reference to it.
func (p Problems) sorted() Problems {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

// asError returns p sorted, or nil if it is empty: a nil Problems in an error is not nil.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p.sorted()
}

// problems collects problems; every stage adds to it and continues as far as it can.
type problems struct{ list Problems }

func (p *problems) add(path, keyword, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Keyword: keyword, Message: fmt.Sprintf(format, args...)})
}

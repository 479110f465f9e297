package adapter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is a reason why a schema has no form.
type Problem struct {
	// Path is the JSON Pointer (RFC 6901) of the schema within the canonical parameters; "" is the root.
	Path string `json:"path"`
	// Keyword is the wrong JSON Schema keyword, or "" for the whole text.
	Keyword string `json:"keyword"`
	// Message explains the problem and its fix.
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

// Problems is the error of this package's functions: all distinct problems, sorted by path, keyword and message.
// Extract it with [errors.As].
type Problems []Problem

// Error returns a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, 0, len(p)+1)
	lines = append(lines, fmt.Sprintf("the tool's parameters have %d problem(s)", len(p)))
	for _, one := range p {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n\t")
}

// sorted sorts the problems and drops duplicates, because an inlined definition is visited for each reference.
func (p Problems) sorted() Problems {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(p)
}

// asError returns p sorted, or a nil error if it is empty.
func (p Problems) asError() error {
	if len(p) == 0 {
		return nil
	}
	return p.sorted()
}

type problems struct{ list Problems }

func (p *problems) add(path, keyword, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Keyword: keyword, Message: fmt.Sprintf(format, args...)})
}

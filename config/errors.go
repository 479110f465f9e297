package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// Where is a file with a line ("voicegw.yaml:3"), an environment variable or a
	// flag.
	Where string
	// Message is a sentence that says what is wrong and how to fix it. It never
	// contains a secret.
	Message string
}

// String returns both, as "where: message".
func (p Problem) String() string { return p.Where + ": " + p.Message }

// Problems is everything that is wrong with a configuration: the error of Load.
type Problems []Problem

// Error returns all problems, one per line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(where, format string, args ...any) {
	*p = append(*p, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
}

package config

import (
	"fmt"
	"strings"
)

// Problem is a problem of a configuration.
type Problem struct {
	// Where is a file with a line ("voicegw.yaml:3"), an environment variable or a flag.
	Where string
	// Message explains the problem and its fix. It contains no secret.
	Message string
}

// String returns "where: message".
func (p Problem) String() string { return p.Where + ": " + p.Message }

// Problems is the error of Load: all problems of a configuration.
type Problems []Problem

// Error returns the problems, one per line.
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

package main

import (
	"errors"
	"fmt"

	"voicegw/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitInvalid = 3 // a load run whose measurements cannot be trusted
)

// exitError is an error with an exit code other than exitFailure.
type exitError struct {
	code int
	err  error // nil if the person at the terminal has been told
}

// Error returns the text of the error.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error without its code.
func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as one of usage or configuration.
func usage(err error) error { return &exitError{exitUsage, err} }

// told ends the program with a code and says nothing more.
func told(code int) error { return &exitError{code: code} }

// exit shows an error to the person at the terminal and returns the program's exit code.
func (p Process) exit(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case !errors.As(err, &coded):
		p.complain("%v", err)
		return exitFailure
	case coded.err != nil:
		p.complainAll(coded.err)
	}
	return coded.code
}

// complainAll shows an error, or every problem of a configuration.
func (p Process) complainAll(err error) {
	var problems config.Problems
	if !errors.As(err, &problems) {
		p.complain("%v", err)
		return
	}
	if len(problems) == 1 {
		p.complain("the configuration has a problem:")
	} else {
		p.complain("the configuration has %d problems:", len(problems))
	}
	for _, problem := range problems {
		_, _ = fmt.Fprintf(p.Stderr, "  %s\n", problem)
	}
}

package build

import "errors"

var (
	// ErrNoTools is returned by [Build] and [Lint] if there is no tools directory.
	ErrNoTools = errors.New("there is no directory tools here")
	// ErrName is returned by [New] for a name that no tool can have.
	ErrName = errors.New("a tool cannot have this name")
	// ErrExists is returned by [New] for a tool that already exists.
	ErrExists = errors.New("the tool exists already")
)

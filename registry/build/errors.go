package build

import "errors"

var (
	// ErrNoTools is what [Build] and [Lint] return where there is no tools directory.
	ErrNoTools = errors.New("there is no directory tools here")
	// ErrName is what [New] returns for a name that no tool can have.
	ErrName = errors.New("a tool cannot have this name")
	// ErrExists is what [New] returns for a tool that is there already.
	ErrExists = errors.New("the tool exists already")
)

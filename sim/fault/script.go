package fault

import "time"

// Script is a fault script. It never changes after Parse, so any number of
// connections may use it at once. A nil Script commits no fault.
type Script struct {
	rules []rule
}

type rule struct{}

// Parse reads a fault script from YAML; docs/simulator.md lists every key. All
// problems are reported at once as an *Error, each with its line. name is the
// file's name, used in the error.
func Parse(name string, data []byte) (*Script, error) { return &Script{}, nil }

// NewInjector gives connection n of the server, from 1, its injector. The same
// seed gives the same faults at the same points. Wires get theirs from
// wire.Options.Begin.
func (s *Script) NewInjector(seed uint64, n int) *Injector { return &Injector{} }

// Injector is one connection's use of a script. One goroutine at a time may
// use it. A nil Injector commits no fault.
type Injector struct{}

// At tells the faults due at p, in the order of the script, and counts them.
func (i *Injector) At(p Point) []Action { return nil }

// Timed tells the faults that are due at a time, earliest first. It is called
// once, when the connection is accepted.
func (i *Injector) Timed() []Timed { return nil }

var _ = time.Second

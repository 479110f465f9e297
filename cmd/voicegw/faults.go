package main

import (
	"errors"

	"voicegw/gateway"
	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

var _ gateway.Simulator = (*simulator)(nil)

// forGateway returns s, or a nil interface for a nil s.
func (s *simulator) forGateway() gateway.Simulator {
	if s == nil {
		return nil
	}
	return s
}

// Simulates implements gateway.Simulator.
func (s *simulator) Simulates(provider string) bool { return s.simulated[provider] }

// Faults implements gateway.Simulator.
func (s *simulator) Faults() []gateway.Fault {
	var list []gateway.Fault
	for _, b := range fault.Buttons() {
		list = append(list, gateway.Fault{Do: string(b.Do), Label: b.Label, For: b.For, When: momentOf(b.Do)})
	}
	return list
}

// Commit implements gateway.Simulator. The session's own address identifies the connection, so the simulator gets
// nothing that a provider wouldn't.
func (s *simulator) Commit(addr string, o gateway.FaultOrder) (gateway.FaultMoment, error) {
	a, err := fault.Press(o.Do, o.For, o.Code)
	if wrong, ok := errors.AsType[*fault.PressError](err); ok {
		return "", &gateway.FaultError{Field: wrong.Field, Message: wrong.Message}
	}
	switch err := s.local.Server.Inject(addr, a); {
	case errors.Is(err, wire.ErrNoConnection):
		return "", gateway.ErrNotConnected
	case errors.Is(err, wire.ErrTooMany):
		return "", gateway.ErrTooManyFaults
	default:
		return momentOf(a.Kind), err
	}
}

func momentOf(k fault.Kind) gateway.FaultMoment {
	if k.OfCall() {
		return gateway.FaultAtNextCall
	}
	return gateway.FaultNow
}

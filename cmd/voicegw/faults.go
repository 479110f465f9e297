package main

import (
	"errors"

	"voicegw/gateway"
	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

var _ gateway.Simulator = (*simulator)(nil)

// forGateway is s as the gateway takes it: nothing at all where there is none.
func (s *simulator) forGateway() gateway.Simulator {
	if s == nil {
		return nil
	}
	return s
}

// Simulates is part of gateway.Simulator.
func (s *simulator) Simulates(provider string) bool { return s.simulated[provider] }

// Faults is part of gateway.Simulator.
func (s *simulator) Faults() []gateway.Fault {
	var list []gateway.Fault
	for _, b := range fault.Buttons() {
		list = append(list, gateway.Fault{Do: string(b.Do), Label: b.Label, For: b.For, When: momentOf(b.Do)})
	}
	return list
}

// Commit is part of gateway.Simulator. A connection is known by the address of its client,
// which the session knows as its own: so the simulator is sent nothing that a provider
// is not.
func (s *simulator) Commit(addr string, o gateway.FaultOrder) (gateway.FaultMoment, error) {
	a, err := fault.Press(o.Do, o.For, o.Code)
	var wrong *fault.PressError
	if errors.As(err, &wrong) {
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

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"voicegw/config"
	"voicegw/gateway"
	"voicegw/sim"
	"voicegw/sim/fault"
	"voicegw/sim/scenario"
)

// simKey is a key for the built-in simulator, which accepts any.
const simKey = "simulator"

// simulator is the built-in simulator, which replaces all providers; nil if it isn't needed.
type simulator struct {
	local *sim.Local // fixed
}

func simulatorFor(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*simulator, error) {
	if !cfg.Services()[0].Simulated {
		return nil, nil
	}
	o, err := simOptions(cfg.Sim)
	if err != nil {
		return nil, err
	}
	o.Logger = logger.With("component", "simulator")
	local, err := sim.Start(ctx, "", o)
	if err != nil {
		return nil, err
	}
	return &simulator{local}, nil
}

// errSimFiles is wrapped by errors about a scenario or a fault script.
var errSimFiles = errors.New("the simulator's files have problems")

// simOptions converts a configuration. The error lists all problems of the scenario and the faults.
func simOptions(c config.Sim) (sim.Options, error) {
	o := sim.Options{Seed: uint64(c.Seed), Speed: c.Speed, ChunkMS: c.ChunkMS, FirstAudioMS: c.FirstAudioMS,
		ConnectionLife: c.ConnectionLife}
	var scenarioErr, faultsErr error
	if c.Scenario.Path != "" {
		o.Scenario, scenarioErr = scenario.Parse(c.Scenario.Path, c.Scenario.Data)
	}
	if c.Faults.Path != "" {
		o.Faults, faultsErr = fault.Parse(c.Faults.Path, c.Faults.Data)
	}
	if err := errors.Join(scenarioErr, faultsErr); err != nil {
		return o, errors.Join(errSimFiles, err)
	}
	return o, nil
}

func (s *simulator) openaiURL() string { return s.local.OpenAIURL() }

// url is the base URL of a wire; for a nil simulator, one that nothing listens on.
func (s *simulator) url(wire string) string {
	if s == nil {
		return "http://" + net.JoinHostPort("127.0.0.1", "0")
	}
	return s.local.URL(wire)
}

func (s *simulator) close() error {
	if s == nil {
		return nil
	}
	return s.local.Close()
}

// forGateway returns what causes faults; a nil interface for a nil s.
func (s *simulator) forGateway() gateway.Simulator {
	if s == nil {
		return nil
	}
	return s.local.Server
}

package main

import (
	"context"
	"errors"
	"log/slog"

	"voicegw/config"
	"voicegw/sim"
	"voicegw/sim/fault"
	"voicegw/sim/scenario"
)

// simKey is a key for the built-in simulator, which accepts any.
const simKey = "simulator"

// simulatorFor starts the built-in simulator, which replaces all providers; nil if it isn't needed.
func simulatorFor(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*sim.Local, error) {
	if !cfg.Services()[0].Simulated {
		return nil, nil
	}
	o, err := simOptions(cfg.Sim)
	if err != nil {
		return nil, err
	}
	o.Logger = logger.With("component", "simulator")
	return sim.Start(ctx, "", o)
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

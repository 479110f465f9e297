package server

import (
	"context"
	"errors"
	"log/slog"

	"voicegw/config"
	"voicegw/sim"
	"voicegw/sim/scenario"
)

// simKey is a key for the built-in simulator, which accepts any.
const simKey = "simulator"

// simulatorFor starts the built-in simulator, which replaces all providers; nil if it isn't needed.
func simulatorFor(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*sim.Local, error) {
	if !cfg.Services()[0].Simulated {
		return nil, nil
	}
	o, err := SimOptions(cfg.Sim)
	if err != nil {
		return nil, err
	}
	o.Logger = logger.With("component", "simulator")
	return sim.Start(ctx, "", o)
}

// ErrSimFiles is wrapped by errors about a scenario or a fault script.
var ErrSimFiles = errors.New("the simulator's files have problems")

// SimOptions converts a configuration. The error lists all problems of the scenario and the faults.
func SimOptions(c config.Sim) (sim.Options, error) {
	o := sim.Options{Seed: uint64(c.Seed), Speed: c.Speed, ChunkMS: c.ChunkMS, FirstAudioMS: c.FirstAudioMS,
		ConnectionLife: c.ConnectionLife}
	var scenarioErr, faultsErr error
	if c.Scenario.Path != "" {
		o.Scenario, scenarioErr = scenario.Parse(c.Scenario.Path, c.Scenario.Data)
	}
	if c.Faults.Path != "" {
		o.Faults, faultsErr = scenario.ParseFaults(c.Faults.Path, c.Faults.Data)
	}
	if err := errors.Join(scenarioErr, faultsErr); err != nil {
		return o, errors.Join(ErrSimFiles, err)
	}
	return o, nil
}

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

// simKey is the key for the gateway's own simulator, which accepts any.
const simKey = "simulator"

// simulator is the simulator inside the process; nil if it is not needed.
type simulator struct {
	// Fixed after simulatorFor.
	local     *sim.Local
	simulated map[string]bool // the providers that it stands in for
}

// simulatorFor starts a simulator if the configuration offers simulated providers.
func simulatorFor(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*simulator, error) {
	if !cfg.Services()[0].Simulated {
		return nil, nil
	}
	o, err := simOptions(cfg.Sim.Scenario.Path, cfg.Sim.Scenario.Data, cfg.Sim.Faults.Path, cfg.Sim.Faults.Data)
	if err != nil {
		return nil, err
	}
	o.Seed = uint64(cfg.Sim.Seed)
	o.Speed, o.ChunkMS, o.FirstAudioMS = cfg.Sim.Speed, cfg.Sim.ChunkMS, cfg.Sim.FirstAudioMS
	o.Logger = logger.With("component", "simulator")
	local, err := sim.Start(ctx, "", o)
	if err != nil {
		return nil, err
	}
	s := &simulator{local: local, simulated: map[string]bool{}}
	for _, service := range cfg.Services() {
		s.simulated[service.Name] = service.Simulated
	}
	return s, nil
}

// errSimFiles is wrapped by errors about a scenario or a fault script.
var errSimFiles = errors.New("the simulator's files have problems")

// simOptions parses the simulator's files; a path may be empty. The error lists all problems of
// both files.
func simOptions(scenarioPath string, scenarioData []byte, faultsPath string, faultsData []byte) (sim.Options, error) {
	var o sim.Options
	var scenarioErr, faultsErr error
	if scenarioPath != "" {
		o.Scenario, scenarioErr = scenario.Parse(scenarioPath, scenarioData)
	}
	if faultsPath != "" {
		o.Faults, faultsErr = fault.Parse(faultsPath, faultsData)
	}
	if err := errors.Join(scenarioErr, faultsErr); err != nil {
		return o, errors.Join(errSimFiles, err)
	}
	return o, nil
}

// openaiURL is the base URL of its chat models and images, and of OpenAI's wire.
func (s *simulator) openaiURL() string { return s.local.OpenAIURL() }

// close ends the simulator, if there is one.
func (s *simulator) close() error {
	if s == nil {
		return nil
	}
	return s.local.Close()
}

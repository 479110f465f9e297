// Package server connects the parts of a gateway as its configuration says, runs them and ends them. It also opens the
// tools for commands that need no gateway.
package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/registry"
)

// Host is the process that a gateway or its tools run in. Its fields are fixed.
type Host struct {
	Version string
	// Stdout gets the audit log if audit.file is -.
	Stdout io.Writer
	// Stderr gets the log, and a greeting if it is a terminal.
	Stderr  io.Writer
	Environ []string
	// Signals delivers signals that end the program. Nil delivers none.
	Signals <-chan os.Signal
	// Reloads delivers signals to reload the configuration. Nil means SIGHUP, except at a terminal.
	Reloads <-chan os.Signal
	// Registry returns tool_registry.json. Nil means the built-in one.
	Registry func() ([]byte, error)
	// Handlers are the registry's handlers. Nil means the built-in ones.
	Handlers map[string]registry.Handler

	// Sweeps replaces the ticks at which sessions of revoked credentials end, for tests.
	Sweeps <-chan time.Time
	// LeaveTime replaces the time that the gateway gets after a second signal, for tests on a slow disk.
	LeaveTime time.Duration
}

// ErrSignal means that a signal stopped a command.
var ErrSignal = errors.New("stopped by a signal")

// Variable returns the last value of an environment variable.
func (h Host) Variable(name string) string {
	value := ""
	for _, entry := range h.Environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// DataDir returns the absolute path of the data folder: data_dir, or a folder in the XDG state directory
// ($XDG_STATE_HOME, by default ~/.local/state). It is empty if that is unknown and the configuration needs no folder.
// The error is config.Problems.
func (h Host) DataDir(cfg *config.Config) (string, error) {
	if cfg.DataDir != "" {
		dir, err := filepath.Abs(string(cfg.DataDir))
		if err != nil {
			return "", fmt.Errorf("data_dir: %w", err)
		}
		return dir, nil
	}
	// XDG says to ignore a relative path.
	if state := h.Variable("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "voicegw"), nil
	}
	if home := h.Variable("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "voicegw"), nil
	}
	if cfg.Store.URL != "" && cfg.Audit.File != "" {
		return "", nil
	}
	return "", config.Problems{{
		Where: "VOICEGW_DATA_DIR",
		Message: "data_dir is missing, and it has no default because neither XDG_STATE_HOME nor HOME is set; set it, for " +
			"example with --data-dir.",
	}}
}

// AuditFile returns the path of the audit log, or setting.Stdout.
func AuditFile(cfg *config.Config, dataDir string) setting.Path {
	return cmp.Or(cfg.Audit.File, setting.Path(filepath.Join(dataDir, "audit", "audit.jsonl")))
}

// registryData returns tool_registry.json. The error is registry.ErrEmpty if none was built.
func (h Host) registryData() ([]byte, error) {
	if h.Registry != nil {
		return h.Registry()
	}
	return registry.Embedded()
}

// BuiltIn returns the built-in registry without loading it.
func (h Host) BuiltIn() (file registry.File, err error) {
	data, err := h.registryData()
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	return file, err
}

// anySettings gives each required setting some value, to check whether the tools load.
func (h Host) anySettings() map[string]registry.ToolSettings {
	all := map[string]registry.ToolSettings{}
	file, _ := h.BuiltIn() // loading it reports the error
	for _, t := range file.Tools {
		values := map[string]any{}
		for name, s := range t.Settings {
			if s.Value() == nil {
				values[name] = config.ZeroSetting(s)
			}
		}
		all[t.ToolID] = registry.ToolSettings{Values: values}
	}
	return all
}

// CheckRegistry loads the tools with the capabilities that a gateway provides, without a configuration.
func (h Host) CheckRegistry() error {
	data, err := h.registryData()
	if err == nil {
		_, err = registry.Load(data, registry.Options{Handlers: handlers(), ModeCapabilities: provided(), Settings: h.anySettings()})
	}
	return err
}

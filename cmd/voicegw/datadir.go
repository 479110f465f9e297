package main

import (
	"fmt"
	"path/filepath"

	"voicegw/config"
)

// dataDir returns the absolute path of the folder of what outlives the process:
// data_dir, or where users' programs keep such things (XDG base directories:
// $XDG_STATE_HOME, by default ~/.local/state). It is empty where it is not known and
// the configuration puts nothing there. The error is config.Problems.
func (p Process) dataDir(cfg *config.Config) (string, error) {
	if cfg.DataDir != "" {
		dir, err := filepath.Abs(string(cfg.DataDir))
		if err != nil {
			return "", fmt.Errorf("data_dir: %w", err)
		}
		return dir, nil
	}
	// A relative path in these variables is to be ignored.
	if state := variable(p.Environ, "XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "voicegw"), nil
	}
	if home := variable(p.Environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "voicegw"), nil
	}
	if cfg.Store.URL != "" && cfg.Audit.File != "" {
		return "", nil
	}
	return "", config.Problems{{
		Where:   "VOICEGW_DATA_DIR",
		Message: "data_dir is missing, and there is no folder of the user's to stand in for it (neither XDG_STATE_HOME nor HOME is set); name one, for example with --data-dir.",
	}}
}

// auditFile is where the audit's JSON lines go: a path, or config.Stdout.
func auditFile(cfg *config.Config, dataDir string) config.Path {
	if cfg.Audit.File != "" {
		return cfg.Audit.File
	}
	return config.Path(filepath.Join(dataDir, "audit", "audit.jsonl"))
}

package main

import (
	"cmp"
	"fmt"
	"path/filepath"

	"voicegw/config"
	"voicegw/config/setting"
)

// dataDir returns the absolute path of the folder for data that outlives the process: data_dir, or
// the usual place for users' programs (XDG base directories: $XDG_STATE_HOME, by default
// ~/.local/state). It is empty if that place is unknown and the configuration needs no folder. The
// error is config.Problems.
func (p Process) dataDir(cfg *config.Config) (string, error) {
	if cfg.DataDir != "" {
		dir, err := filepath.Abs(string(cfg.DataDir))
		if err != nil {
			return "", fmt.Errorf("data_dir: %w", err)
		}
		return dir, nil
	}
	// The specification says to ignore a relative path in these variables.
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

// auditFile returns where the audit's JSON lines go: a path, or setting.Stdout.
func auditFile(cfg *config.Config, dataDir string) setting.Path {
	return cmp.Or(cfg.Audit.File, setting.Path(filepath.Join(dataDir, "audit", "audit.jsonl")))
}

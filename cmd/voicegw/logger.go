package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// newLogger makes the one logger of the program. Level and format are those of the
// configuration.
func newLogger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	// The configuration has been validated; anything else stays at info.
	_ = l.UnmarshalText([]byte(level))
	_, isTerminal := terminal(w)
	if format == "json" || format == "auto" && !isTerminal {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: l, TimeFormat: time.TimeOnly, NoColor: !isTerminal}))
}

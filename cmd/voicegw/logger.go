package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"voicegw/internal/redact"
	"voicegw/internal/terminal"
)

// newLogger makes the program's only logger, with the configured level and format. It does not
// write the secrets given, nor anything that has the form of one.
func newLogger(w io.Writer, level, format string, secrets ...string) *slog.Logger {
	fence := redact.New(secrets...)
	var l slog.Level
	// The configuration has been validated; anything else stays at info.
	_ = l.UnmarshalText([]byte(level))
	_, isTerminal := terminal.Width(w)
	if format == "json" || format == "auto" && !isTerminal {
		return slog.New(fence.Handler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})))
	}
	return slog.New(fence.Handler(tint.NewTextHandler(w, &tint.Options{Level: l, TimeFormat: time.TimeOnly, NoColor: !isTerminal})))
}

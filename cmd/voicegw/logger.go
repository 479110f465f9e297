package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"voicegw/internal/redact"
	"voicegw/internal/terminal"
)

// newLogger makes the one logger of the program. Level and format are those of the
// configuration. The secrets given, and whatever has the form of one, are not written.
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

package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"voicegw/internal/logging"
	"voicegw/internal/textutil"
)

// programLog is the program's only logger, and what of it may change. It may be used concurrently.
type programLog struct {
	logger *slog.Logger
	level  *slog.LevelVar
	fence  logging.Redactor // what it does not write
}

// newLog makes the logger, with the configured level and format. It does not write the secrets given, nor
// anything that has the form of one.
func newLog(w io.Writer, level, format string, secrets ...string) programLog {
	l := programLog{level: new(slog.LevelVar), fence: logging.NewRedactor(secrets...)}
	l.level.Set(levelOf(level))
	_, isTerminal := textutil.Width(w)
	if format == "json" || format == "auto" && !isTerminal {
		l.logger = slog.New(l.fence.Handler(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.level})))
	} else {
		l.logger = slog.New(l.fence.Handler(tint.NewTextHandler(w, &tint.Options{Level: l.level, TimeFormat: time.TimeOnly, NoColor: !isTerminal})))
	}
	return l
}

// newLogger makes a logger that does not change.
func newLogger(w io.Writer, level, format string, secrets ...string) *slog.Logger {
	return newLog(w, level, format, secrets...).logger
}

// levelOf reads a level. The configuration has been validated; anything else is info.
func levelOf(name string) slog.Level {
	var l slog.Level
	_ = l.UnmarshalText([]byte(name))
	return l
}

package logging

import (
	"io"
	"log/slog"
	"time"

	"github.com/lmittmann/tint"

	"voicegw/internal/textutil"
)

// Log is a program's logger. Its level and its known secrets may change. It is safe for concurrent use.
type Log struct {
	*slog.Logger
	Redactor
	level *slog.LevelVar
}

// Open returns a logger with a level of slog, in the format text, json, or auto, which is text at a terminal. It hides
// the given secrets and anything that looks like one.
func Open(w io.Writer, level, format string, secrets ...string) Log {
	l := Log{Redactor: NewRedactor(secrets...), level: new(slog.LevelVar)}
	l.SetLevel(level)
	_, isTerminal := textutil.Width(w)
	var to slog.Handler = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.level})
	if format == "text" || format == "auto" && isTerminal {
		to = tint.NewTextHandler(w, &tint.Options{Level: l.level, TimeFormat: time.TimeOnly, NoColor: !isTerminal})
	}
	l.Logger = slog.New(l.Redactor.Handler(to))
	return l
}

// SetLevel changes the minimum level: debug, info, warn or error.
func (l Log) SetLevel(name string) {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name)) // the configuration has been checked
	l.level.Set(level)
}

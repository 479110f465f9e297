// Package seldom logs what may happen very often: the first of its kind at once, and how
// many more there were when a window of time is over. A flood writes two lines in a window.
package seldom

import (
	"log/slog"
	"sync"
	"time"
)

// Window is how long what happened is counted before it is told again.
const Window = 10 * time.Second

// Log writes to a logger. Any number of goroutines may use it.
type Log struct {
	logger *slog.Logger // fixed

	mu    sync.Mutex // guards the following field
	since map[kind]int
}

// kind is what counts as the same.
type kind struct{ message, reason string }

// New returns a Log that writes to logger.
func New(logger *slog.Logger) *Log { return &Log{logger: logger, since: make(map[kind]int)} }

// Info notes that something happened. Message and reason together say what counts as the
// same; both must come from the program and not from outside, or there is no end of kinds.
// The first of a window is logged at level info with the attributes, as slog takes them. The
// others are counted, and logged at level debug. At the end of the window a line tells how
// many they were, if any.
func (l *Log) Info(message, reason string, attrs ...any) {
	k := kind{message, reason}
	l.mu.Lock()
	more, counting := l.since[k]
	if counting {
		l.since[k] = more + 1
	} else {
		l.since[k] = 0
		time.AfterFunc(Window, func() { l.tell(k) })
	}
	l.mu.Unlock()
	write := l.logger.Info
	if counting {
		write = l.logger.Debug
	}
	write(message, append([]any{"reason", reason}, attrs...)...)
}

// tell ends a window, and says what came in it. Where something came, another window
// follows, so that a flood that goes on is counted and not told anew.
func (l *Log) tell(k kind) {
	l.mu.Lock()
	more := l.since[k]
	if more == 0 {
		delete(l.since, k)
	} else {
		l.since[k] = 0
		time.AfterFunc(Window, func() { l.tell(k) })
	}
	l.mu.Unlock()
	if more > 0 {
		l.logger.Info(k.message, "reason", k.reason, "more", more, "within_ms", Window.Milliseconds())
	}
}

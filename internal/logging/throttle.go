// Package logging has slog handlers that limit frequent messages and remove secrets, and reports new secrets to tests.
package logging

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ThrottleWindow is the minimum interval between two lines about the same event.
const ThrottleWindow = 10 * time.Second

// Throttle logs frequent events: the first at once, others as a count for each window. Safe for concurrent use.
type Throttle struct {
	logger *slog.Logger // fixed

	mu    sync.Mutex // guards the following field
	since map[kind]int
}

type kind struct{ message, reason string }

// NewThrottle returns a Throttle that writes to logger.
func NewThrottle(logger *slog.Logger) *Throttle {
	return &Throttle{logger: logger, since: make(map[kind]int)}
}

// Info logs an event with attrs. Events with the same message and reason, both from the program, are counted together;
// further ones of a window are logged at debug level and as a count at its end.
func (l *Throttle) Info(message, reason string, attrs ...any) {
	k := kind{message, reason}
	l.mu.Lock()
	more, counting := l.since[k]
	if counting {
		l.since[k] = more + 1
	} else {
		l.since[k] = 0
		time.AfterFunc(ThrottleWindow, func() { l.tell(k) })
	}
	l.mu.Unlock()
	write := l.logger.Info
	if counting {
		write = l.logger.Debug
	}
	write(message, append([]any{"reason", reason}, attrs...)...)
}

// tell ends a window and logs its count. If there were events, another window follows.
func (l *Throttle) tell(k kind) {
	l.mu.Lock()
	more := l.since[k]
	if more == 0 {
		delete(l.since, k)
	} else {
		l.since[k] = 0
		time.AfterFunc(ThrottleWindow, func() { l.tell(k) })
	}
	l.mu.Unlock()
	if more > 0 {
		l.logger.Info(k.message, "reason", k.reason, "more", more, "within_ms", ThrottleWindow.Milliseconds())
	}
}

// Kind is a secret's purpose.
type Kind string

// The kinds.
const (
	Ticket       Kind = "ticket"
	Confirmation Kind = "token of a confirmation"
	OperatorsKey Kind = "operators' key"
	Console      Kind = "code or token of the console"
	Image        Kind = "address of an image"
	Resume       Kind = "token of a resume"
	APIKey       Kind = "API key"
)

var told atomic.Pointer[func(Kind, string)]

// Made must be called with each new secret before any other code gets it. It may be called concurrently.
func Made(kind Kind, secret string) {
	if tell := told.Load(); tell != nil {
		(*tell)(kind, secret)
	}
}

// Tell sets the function that receives secrets, for tests.
func Tell(tell func(Kind, string)) { told.Store(&tell) }

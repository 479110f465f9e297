// Package logging has slog handlers that limit frequent messages and remove secrets, and reports new secrets to tests.
package logging

import (
	"log/slog"
	"sync"
	"time"
)

// ThrottleWindow is the minimum interval between two lines about the same event.
const ThrottleWindow = 10 * time.Second

// Throttle logs frequent events: the first at once, the others as a count at the end of each window. It may be used
// concurrently.
type Throttle struct {
	logger *slog.Logger // fixed

	mu    sync.Mutex // guards the following field
	since map[kind]int
}

// kind identifies events that are counted together.
type kind struct{ message, reason string }

// NewThrottle returns a Throttle that writes to logger.
func NewThrottle(logger *slog.Logger) *Throttle {
	return &Throttle{logger: logger, since: make(map[kind]int)}
}

// Info logs an event. Events with the same message and reason are counted together; both must come from the program,
// because each pair is remembered. The first event of a window is logged at level info with attrs, further ones at level
// debug. At the end of the window, a line reports the number of further events, if any.
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

package execute

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// lines records the output of a Logger.
type lines struct {
	mu  sync.Mutex // guards the following field
	buf bytes.Buffer
}

func (l *lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// Write takes a line.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) has(word string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), word)
}

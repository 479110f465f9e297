package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Part is a part of a program that ends.
type Part struct {
	Name string
	End  func() error
}

// End ends parts in order. After limit, or at a signal, it stops waiting; the log and the error then name the pending
// part.
func End(signals <-chan os.Signal, logger *slog.Logger, limit time.Duration, parts ...Part) error {
	var at atomic.Pointer[Part] // the part that is ending
	done := make(chan error, 1) // buffered: the receiver may be gone
	go func() {
		var err error
		for _, part := range parts {
			at.Store(&part)
			err = errors.Join(err, part.End())
		}
		done <- err
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	var why string
	select {
	case err := <-done:
		return err
	case <-signals:
		why = "when another signal came"
	case <-late.C:
		why = fmt.Sprintf("within %s", limit)
	}
	name := "closing"
	if part := at.Load(); part != nil {
		name = part.Name
	}
	logger.Error("aborting a part that did not end", "part", name)
	return fmt.Errorf("%s did not end %s", name, why)
}

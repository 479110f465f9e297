package textutil

import (
	"bufio"
	"os"
	"time"
)

// OpenTyped opens the terminal of this process to read lines; see Typed. It is opened a second time because a pending
// read of standard input cannot be ended.
func OpenTyped() (lines <-chan string, stop func(), err error) {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return nil, nil, err
	}
	if err := tty.SetReadDeadline(time.Time{}); err != nil {
		_ = tty.Close() // nothing was read of it
		return nil, nil, err
	}
	lines, stop = Typed(tty)
	return lines, stop, nil
}

// Typed reads lines until the end of tty or stop, which closes tty and waits for the reader. It closes the channel.
func Typed(tty *os.File) (lines <-chan string, stop func()) {
	// From the goroutine here to the caller; that goroutine closes it.
	out := make(chan string)
	stopping := make(chan struct{}) // closed by stop
	stopped := make(chan struct{})  // closed by the goroutine
	go func() {
		defer close(stopped)
		defer close(out)
		for s := bufio.NewScanner(tty); s.Scan(); {
			select {
			case out <- s.Text():
			case <-stopping:
				return
			}
		}
	}()
	return out, func() {
		close(stopping)
		// OpenTyped has tried that a deadline ends a read of this file.
		_ = tty.SetReadDeadline(time.Now())
		<-stopped
		_ = tty.Close()
	}
}

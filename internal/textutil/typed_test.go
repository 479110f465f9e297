package textutil

import (
	"io"
	"os"
	"testing"
)

// TestTyped: lines arrive while a user types, and reading ends on request, even without further input.
func TestTyped(t *testing.T) {
	for name, typist := range map[string]func(io.WriteCloser) error{
		"ended from outside":  func(io.WriteCloser) error { return nil },
		"at the end of input": io.WriteCloser.Close,
	} {
		t.Run(name, func(t *testing.T) {
			tty, keys, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = keys.Close() }()
			lines, stop := Typed(tty)
			for _, want := range []string{"y", ""} {
				if _, err := io.WriteString(keys, want+"\n"); err != nil {
					t.Fatal(err)
				}
				if got, ok := <-lines; got != want || !ok {
					t.Errorf("got %q %v, want %q", got, ok, want)
				}
			}
			if err := typist(keys); err != nil {
				t.Fatal(err)
			}
			stop()
			if line, ok := <-lines; ok {
				t.Errorf("got %q after the end", line)
			}
			if _, err := tty.Stat(); err == nil {
				t.Error("the terminal is still open")
			}
		})
	}
}

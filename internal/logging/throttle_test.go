package logging

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// console is the logged text; timers write lines too.
type console struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

// take returns the lines so far, from their message on, and clears them.
func (c *console) take() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.out.Reset()
	for line := range strings.Lines(c.out.String()) {
		all = append(all, line[strings.Index(line, "msg="):])
	}
	return all
}

// TestAFloodIsTwoLines: the first line of each kind is logged with its attributes, the others are counted, and after the
// flood nothing more is written or stored.
func TestAFloodIsTwoLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out console
		l := NewThrottle(slog.New(slog.NewTextHandler(&out, nil)))
		lines := out.take
		for i := range 1000 {
			l.Info("refused", "full", "addr", i)
			if i == 10 {
				l.Info("refused", "draining", "addr", i)
			}
		}
		want := []string{"msg=refused reason=full addr=0\n", "msg=refused reason=draining addr=10\n"}
		if got := lines(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("at once: %q", got)
		}
		<-time.After(ThrottleWindow)
		synctest.Wait()
		if got := lines(); fmt.Sprint(got) != "[msg=refused reason=full more=999 within_ms=10000\n]" {
			t.Errorf("after a window: %q", got)
		}
		l.Info("refused", "full", "addr", 7)
		if got := lines(); len(got) != 0 {
			t.Errorf("the flood continues, and is logged again: %q", got)
		}
		<-time.After(2 * ThrottleWindow)
		synctest.Wait()
		if got := lines(); fmt.Sprint(got) != "[msg=refused reason=full more=1 within_ms=10000\n]" {
			t.Errorf("at the end: %q", got)
		}
		if len(l.since) != 0 {
			t.Errorf("%v is stored", l.since)
		}
		l.Info("refused", "full", "addr", 8)
		if got := lines(); fmt.Sprint(got) != "[msg=refused reason=full addr=8\n]" {
			t.Errorf("another one, later: %q", got)
		}
	})
}

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/store"
)

// slowDirectory takes a while for each record, and is unreachable until a time.
type slowDirectory struct {
	*store.Directory
	takes time.Duration
	until time.Time

	mu          sync.Mutex
	atOnce, max int
	entered     []string
}

func (d *slowDirectory) Enter(_ context.Context, r store.SessionRecord) (*store.Owned, error) {
	d.mu.Lock()
	d.atOnce++
	d.max = max(d.max, d.atOnce)
	d.mu.Unlock()
	<-time.After(d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.atOnce--
	if time.Now().Before(d.until) {
		return nil, fmt.Errorf("%w: unreachable", store.ErrUnavailable)
	}
	d.entered = append(d.entered, r.ID)
	return nil, fmt.Errorf("%w: it only counts", store.ErrUsed)
}

// entering begins n sessions at once at a directory, and returns their places.
func entering(d Directory, log *slog.Logger, sessions int) (*Node, []*place) {
	n := NewNode(NodeOptions{Directory: d, Logger: log})
	all := make([]*place, sessions)
	for i := range all {
		all[i] = n.Enter(store.SessionRecord{ID: fmt.Sprintf("voice-%04d", i)}).(*place)
	}
	return n, all
}

// TestManySessionsAreEnteredByAFew: a few goroutines write sessions that begin at once, in their order: a waiting record
// has no goroutine and no timeout.
func TestManySessionsAreEnteredByAFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDirectory{takes: 20 * time.Millisecond}
		before := runtime.NumGoroutine()
		n, _ := entering(d, slog.New(slog.DiscardHandler), 2000)
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > mostWriters {
			t.Errorf("2000 sessions that wait have %d goroutines, want at most %d", more, mostWriters)
		}
		n.Close()
		if d.max != mostWriters || len(d.entered) != 2000 {
			t.Errorf("%d were entered, %d at once; want 2000, %d at once", len(d.entered), d.max, mostWriters)
		}
		for i, id := range d.entered {
			if last := fmt.Sprintf("voice-%04d", max(0, i-mostWriters)); id < last {
				t.Fatalf("%s was written after %s, which was queued later", id, last)
			}
		}
	})
}

// TestASlowDirectory: a slow store does not delay hundreds of clients: with a third of a second for each write, their
// sessions are written before a client gets the notice that its token may be unknown to other gateways.
func TestASlowDirectory(t *testing.T) {
	const patience = 2 * time.Second // of a client for its token
	synctest.Test(t, func(t *testing.T) {
		d := &slowDirectory{takes: time.Second / 3}
		began := time.Now()
		n, _ := entering(d, slog.New(slog.DiscardHandler), 300)
		n.Close()
		if took := time.Since(began); len(d.entered) != 300 || took > patience {
			t.Errorf("%d of 300 sessions were entered in %v; a client waits %v", len(d.entered), took, patience)
		}
	})
}

// TestAnOutageOfTheDirectory: an outage of minutes is logged once, and the store gets all sessions afterwards, except
// those that have ended.
func TestAnOutageOfTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := &slowDirectory{takes: time.Millisecond, until: time.Now().Add(5 * time.Minute)}
		n, all := entering(d, slog.New(slog.NewTextHandler(&log, nil)), 100)
		<-time.After(4 * time.Minute)
		synctest.Wait()
		if told := strings.Count(log.String(), "cannot write"); told != 1 {
			t.Errorf("the log has %d times that the store is unreachable:\n%s", told, &log)
		}
		all[7].Leave()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if len(d.entered) != 99 {
			t.Errorf("%d sessions are written after the outage, want the 99 that still run", len(d.entered))
		}
		n.Close()
	})
}

// TestClosingDuringAnOutage: a node that closes does not wait for an unreachable store.
func TestClosingDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDirectory{takes: time.Second, until: time.Now().Add(time.Hour)}
		n, all := entering(d, slog.New(slog.DiscardHandler), 1000)
		<-time.After(10 * time.Second)
		for _, p := range all[:500] { // the others did not end in time
			p.Leave()
		}
		began := time.Now()
		n.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

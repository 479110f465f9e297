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

// slowDirectory takes a while for each record, and is away until a time.
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
		return nil, fmt.Errorf("%w: away", store.ErrUnavailable)
	}
	d.entered = append(d.entered, r.ID)
	return nil, fmt.Errorf("%w: it only counts", store.ErrUsed)
}

// entering begins so many sessions at once at a directory, and returns their places.
func entering(d Directory, log *slog.Logger, sessions int) (*Node, []*place) {
	n := NewNode(NodeOptions{Directory: d, Logger: log})
	all := make([]*place, sessions)
	for i := range all {
		all[i] = n.Enter(store.SessionRecord{ID: fmt.Sprintf("voice-%04d", i)}).(*place)
	}
	return n, all
}

// Sessions that begin all at once are entered by a few goroutines, in their order: a record that waits
// for its turn has no goroutine and no time that runs out.
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
				t.Fatalf("%s was entered after %s, which came behind it", id, last)
			}
		}
	})
}

// A slow store does not keep hundreds of clients waiting: when each write takes a third of a second, their
// sessions are entered before any of them is told that its token may be unknown to other gateways.
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

// A store that is away for minutes is told to the log once, and gets all sessions afterwards. A session
// that has ended meanwhile is not entered.
func TestAnOutageOfTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := &slowDirectory{takes: time.Millisecond, until: time.Now().Add(5 * time.Minute)}
		n, all := entering(d, slog.New(slog.NewTextHandler(&log, nil)), 100)
		<-time.After(4 * time.Minute)
		synctest.Wait()
		if told := strings.Count(log.String(), "cannot write"); told != 1 {
			t.Errorf("the log tells %d times that the store is away:\n%s", told, &log)
		}
		all[7].Leave()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if len(d.entered) != 99 {
			t.Errorf("%d sessions are entered after the outage, want the 99 that still run", len(d.entered))
		}
		n.Close()
	})
}

// A node that closes does not wait for a store that is away.
func TestClosingWhileTheDirectoryIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDirectory{takes: time.Second, until: time.Now().Add(time.Hour)}
		n, all := entering(d, slog.New(slog.DiscardHandler), 1000)
		<-time.After(10 * time.Second)
		for _, p := range all[:500] { // the others are not over: their sessions have not ended in time
			p.Leave()
		}
		began := time.Now()
		n.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("closing took %v", took)
		}
	})
}

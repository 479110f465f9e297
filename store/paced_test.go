package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// written is the writes of a paced: the turns of checkpoints, and their times in seconds.
type written struct {
	mu    sync.Mutex
	began time.Time
	did   []string
	mood  func() error // of a write; nil performs it
}

func (w *written) write(_ context.Context, session string, of *Checkpoint, known uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mood != nil {
		if err := w.mood(); err != nil {
			return known, err
		}
	}
	if of == nil {
		w.did = append(w.did, fmt.Sprintf("%s removed at %v", session, time.Since(w.began)))
		return 0, nil
	}
	w.did = append(w.did, fmt.Sprintf("%s turn %d at %v", session, of.Turn, time.Since(w.began)))
	return known + 1, nil
}

func (w *written) set(mood func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mood = mood
}

// pace runs a test of a paced in a bubble, and returns the writes.
func pace(t *testing.T, run func(p *paced, w *written)) (did []string) {
	synctest.Test(t, func(t *testing.T) {
		w, done := &written{began: time.Now()}, make(chan struct{})
		p := newPaced(w.write, func(f func()) bool { go f(); return true }, done, slog.New(slog.DiscardHandler))
		run(p, w)
		<-time.After(10 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		if p.writers > 0 {
			t.Error("a goroutine runs although there is nothing to write")
		}
		p.mu.Unlock()
		close(done)
		did = w.did
	})
	return did
}

// waiting returns the checkpoint of a session that waits to be written.
func (p *paced) waiting(id string) *Checkpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session(id).pending
}

func at(session string, turn int) *Checkpoint {
	return &Checkpoint{SessionID: session, Epoch: 1, Turn: turn}
}

// TestPace: after a pause a few checkpoints of a session are written at once, then at most one a second, the newest;
// sessions do not delay each other; a waiting checkpoint is replaced by a write that does not wait.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(p *paced, w *written)
		want []string
	}{
		"a few, and then one a second": {func(p *paced, _ *written) {
			for turn := range 25 {
				p.note("a", at("a", turn))
				<-time.After(90 * time.Millisecond)
				synctest.Wait()
			}
		}, []string{"a turn 0 at 0s", "a turn 1 at 90ms", "a turn 2 at 180ms", "a turn 3 at 270ms", "a turn 11 at 1s", "a turn 22 at 2s", "a turn 24 at 3s"}},
		"two sessions": {func(p *paced, _ *written) {
			for turn := range 6 {
				p.note("a", at("a", turn))
				synctest.Wait()
			}
			<-time.After(500 * time.Millisecond)
			p.note("b", at("b", 1))
		}, []string{"a turn 0 at 0s", "a turn 1 at 0s", "a turn 2 at 0s", "a turn 3 at 0s", "b turn 1 at 500ms", "a turn 5 at 1s"}},
		"many sessions, each once": {func(p *paced, w *written) {
			w.set(func() error { return nil })
			for n := range 3 * mostWriters {
				p.note(fmt.Sprint(n), at(fmt.Sprint(n), 1))
			}
			<-time.After(time.Second)
			synctest.Wait()
			w.mu.Lock()
			slices.Sort(w.did)
			w.did = []string{fmt.Sprint(len(slices.Compact(w.did)), " of ", 3*mostWriters)}
			w.mu.Unlock()
		}, []string{fmt.Sprint(3*mostWriters, " of ", 3*mostWriters)}},
		"now": {func(p *paced, _ *written) {
			for turn := range 5 { // the last one waits
				p.note("a", at("a", turn))
				synctest.Wait()
			}
			if err := p.now(context.Background(), "a", at("a", 5)); err != nil {
				panic(err)
			}
		}, []string{"a turn 0 at 0s", "a turn 1 at 0s", "a turn 2 at 0s", "a turn 3 at 0s", "a turn 5 at 0s"}},
		"now, while another is written": {func(p *paced, w *written) {
			writing, goOn := make(chan struct{}), make(chan struct{})
			first := sync.OnceFunc(func() {
				close(writing)
				<-goOn
			})
			w.set(func() error {
				first()
				return nil
			})
			p.note("a", at("a", 1))
			<-writing
			kept := make(chan error)
			go func() { kept <- p.now(context.Background(), "a", at("a", 2)) }()
			for p.waiting("a") == nil {
				runtime.Gosched() // a goroutine that waits for a mutex keeps synctest.Wait from returning
			}
			p.note("a", at("a", 3))
			close(goOn)
			if err := <-kept; err != nil {
				panic(err)
			}
		}, []string{"a turn 1 at 0s", "a turn 3 at 0s"}},
		"after many that did not wait": {func(p *paced, _ *written) {
			for turn := range 8 {
				if err := p.now(context.Background(), "a", at("a", turn)); err != nil {
					panic(err)
				}
			}
			p.note("a", at("a", 8))
		}, []string{"a turn 0 at 0s", "a turn 1 at 0s", "a turn 2 at 0s", "a turn 3 at 0s", "a turn 4 at 0s", "a turn 5 at 0s", "a turn 6 at 0s", "a turn 7 at 0s", "a turn 8 at 1s"}},
		"now, during an outage": {func(p *paced, w *written) {
			w.set(func() error { return fmt.Errorf("%w: away", ErrUnavailable) })
			p.note("a", at("a", 1))
			synctest.Wait()
			if err := p.now(context.Background(), "a", at("a", 2)); !errors.Is(err, ErrUnavailable) {
				panic(err)
			}
			w.set(nil)
		}, []string{"a turn 2 at 1s"}},
		"removed": {func(p *paced, _ *written) {
			for turn := range 5 { // the last one waits
				p.note("a", at("a", turn))
				synctest.Wait()
			}
			p.note("a", nil)
		}, []string{"a turn 0 at 0s", "a turn 1 at 0s", "a turn 2 at 0s", "a turn 3 at 0s", "a removed at 0s"}},
		"an outage": {func(p *paced, w *written) {
			w.set(func() error { return fmt.Errorf("%w: away", ErrUnavailable) })
			p.note("a", at("a", 1))
			<-time.After(1500 * time.Millisecond)
			p.note("a", at("a", 2))
			w.set(nil)
		}, []string{"a turn 2 at 2s"}},
		"another node has it": {func(p *paced, w *written) {
			w.set(func() error { return ErrFenced })
			p.note("a", at("a", 1))
			synctest.Wait()
			w.set(nil)
			if err := p.flush(context.Background(), "a"); !errors.Is(err, ErrFenced) {
				panic(fmt.Sprintf("a caller gets %v", err))
			}
			<-time.After(checkpointLife + 5*time.Second)
			p.note("b", at("b", 1))
			<-time.After(time.Second)
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.sessions["a"] != nil {
				panic("the session is not forgotten")
			}
		}, []string{fmt.Sprintf("b turn 1 at %v", checkpointLife+5*time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pace(t, tc.run); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("writes: %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSlowStore: when each write takes a third of a second, the checkpoints of hundreds of sessions are written
// within little more than one pace of a session.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 250
		var mu sync.Mutex
		var oldest time.Duration
		wrote, began, done := 0, time.Now(), make(chan struct{})
		p := newPaced(func(context.Context, string, *Checkpoint, uint64) (uint64, error) {
			<-time.After(time.Second / 3)
			mu.Lock()
			defer mu.Unlock()
			wrote++
			oldest = max(oldest, time.Since(began))
			return 1, nil
		}, func(f func()) bool { go f(); return true }, done, slog.New(slog.DiscardHandler))
		for n := range sessions {
			id := fmt.Sprint("session ", n)
			p.note(id, at(id, 1))
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		close(done)
		synctest.Wait()
		if most := checkpointEvery * 3 / 2; wrote != sessions || oldest > most {
			t.Errorf("%d of %d checkpoints were written, the last one after %v; the limit is %v", wrote, sessions, oldest, most)
		}
	})
}

// TestNoteWaitsForNothing: a session continues while the store does not answer.
func TestNoteWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, done := make(chan struct{}), make(chan struct{})
		p := newPaced(func(context.Context, string, *Checkpoint, uint64) (uint64, error) { <-blocked; return 1, nil },
			func(f func()) bool { go f(); return true }, done, slog.New(slog.DiscardHandler))
		for turn := range 3 {
			p.note("a", at("a", turn))
			p.note("b", at("b", turn))
			synctest.Wait()
		}
		close(blocked)
		close(done)
	})
}

// TestLongestWaitFirst: with an overloaded store, each session waits equally long.
func TestLongestWaitFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, done := &written{began: time.Now()}, make(chan struct{})
		slow := make(chan struct{}, mostWriters+1)
		p := newPaced(func(ctx context.Context, session string, of *Checkpoint, known uint64) (uint64, error) {
			<-slow
			return w.write(ctx, session, of, known)
		}, func(f func()) bool { go f(); return true }, done, slog.New(slog.DiscardHandler))
		var want []string
		for n := range mostWriters + 20 {
			name := fmt.Sprintf("s%02d", n)
			p.note(name, at(name, 1))
			synctest.Wait()
			if n >= mostWriters { // all writers are busy
				want = append(want, name)
			}
			<-time.After(time.Millisecond)
		}
		p.note("s10", at("s10", 2)) // a newer one keeps the place
		for range mostWriters {     // one after another, so that the order of the next sessions is fixed
			slow <- struct{}{}
			synctest.Wait()
		}
		w.mu.Lock()
		w.did = nil
		w.mu.Unlock()
		for range want {
			slow <- struct{}{}
			synctest.Wait()
		}
		for i, did := range w.did {
			if !strings.HasPrefix(did, want[i]) {
				t.Fatalf("%q were written; want the order %q", w.did, want)
			}
		}
		close(done)
		close(slow)
	})
}

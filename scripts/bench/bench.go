//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	proc "voicegw/internal/process"
)

// bench holds the paths of everything that a run needs.
type bench struct {
	self    string // this program
	dir     string // for temporary files; removed at the end
	gateway string // voicegw, with the probe
	nginx   string
	out     io.Writer

	// The cores of this run's relay, and those of everything else; empty means all.
	relayOn, othersOn string
}

// scenario is work that every relay gets in the same form.
type scenario struct {
	name     string
	sessions int
	frame    time.Duration // 0: the sessions are idle
	warm     time.Duration
	measure  time.Duration
	settle   time.Duration // how long idle sessions stay before they are measured
	// apart gives the relay the last core and everything else the others, so that a round trip
	// contains only its own waits.
	apart bool
}

// run is one measurement of one relay.
type run struct {
	Load     loadResult
	MicrosPF float64 // CPU for a relayed frame, one direction, in microseconds
	KB       float64 // memory per session, minus the empty process
	EmptyMB  float64
	// Only for a gateway.
	Mallocs    float64 // per frame
	SettledKB  float64 // like KB, after garbage collection and the return of free memory
	Goroutines float64 // per session
	// Others is the share of all cores that other programs used, from 0 to 1.
	Others float64
}

// one measures one relay once, with fresh processes.
func (b *bench) one(k kind, s scenario) (r run, err error) {
	b.relayOn, b.othersOn = "", ""
	if last := runtime.NumCPU() - 1; s.apart && last > 0 {
		b.relayOn, b.othersOn = strconv.Itoa(last), "0-"+strconv.Itoa(last-1)
	}
	var to upstream
	_, front, secure := k.plain()
	if secure {
		to.cert = filepath.Join(b.dir, "provider.pem")
	}
	if front {
		to.front = pair{filepath.Join(b.dir, "front.pem"), filepath.Join(b.dir, "front.key")}
		if err := to.front.write(); err != nil {
			return r, err
		}
	}
	provider, err := start(b.othersOn, nil, b.self, "provider", "-frame", s.frameOr().String(), "-cert", to.cert)
	if err != nil {
		return r, err
	}
	defer provider.stop()
	if to.addr, err = provider.line(); err != nil {
		return r, err
	}
	rel, err := k.start(b, to)
	if err != nil {
		return r, err
	}
	defer rel.stop()
	w := &weigher{relay: rel, sessions: s.sessions}
	if err := w.empty(); err != nil {
		return r, err
	}
	load, err := start(b.othersOn, nil, b.self, "load", "-addr", rel.addr, "-cert", to.front.cert, "-speak", k.speak, "-provider", k.wire,
		"-sessions", strconv.Itoa(s.sessions), "-frame", s.frameOr().String(), "-warm", s.warm.String(), "-measure", s.measure.String())
	if err != nil {
		return r, err
	}
	defer load.stop()
	if err := expect(load, "connected"); err != nil {
		return r, err
	}
	if s.frame == 0 {
		<-time.After(s.settle)
		return r, w.idle(&r)
	}
	return r, b.measure(&r, w, provider, load)
}

// frameOr returns the length of a frame, also for a load that sends none.
func (s scenario) frameOr() time.Duration {
	if s.frame == 0 {
		return 20 * time.Millisecond
	}
	return s.frame
}

func expect(p *process, want string) error {
	got, err := p.line()
	if err == nil && got != want {
		err = fmt.Errorf("the load says %q where %q was expected", got, want)
	}
	return err
}

// measure lets the load send, and measures the relay between the load's "begin" and "end".
func (b *bench) measure(r *run, w *weigher, provider, load *process) error {
	if err := load.say("go"); err != nil {
		return err
	}
	if err := expect(load, "begin"); err != nil {
		return err
	}
	before, err := b.clock(w.relay, provider, load)
	if err != nil {
		return err
	}
	if err := expect(load, "end"); err != nil {
		return err
	}
	after, err := b.clock(w.relay, provider, load)
	if err != nil {
		return err
	}
	if err := w.weigh(r); err != nil {
		return err
	}
	answer, err := load.line()
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(answer), &r.Load); err != nil {
		return fmt.Errorf("the load's result: %w", err)
	}
	frames := float64(r.Load.Sent + r.Load.Got)
	if frames > 0 {
		r.MicrosPF = float64((after.relay - before.relay).Microseconds()) / frames
		r.Mallocs = float64(after.inside.Mallocs-before.inside.Mallocs) / frames
	}
	busy := after.all - before.all
	r.Others = max(0, (busy-(after.ours-before.ours)).Seconds()/(after.at.Sub(before.at).Seconds()*cores()))
	return nil
}

// clocks are the times used up to a moment.
type clocks struct {
	at               time.Time
	relay, ours, all time.Duration
	inside           inside
}

func (b *bench) clock(rel *relay, others ...*process) (c clocks, err error) {
	if c.inside, err = rel.look("now"); err != nil {
		return c, err
	}
	c.at = time.Now()
	if rel.proc != nil {
		others = append(others, rel.proc)
		if c.relay, err = rel.proc.cpu(); err != nil {
			return c, err
		}
	}
	own, err := proc.Read(0)
	if err != nil {
		return c, err
	}
	c.ours = own.CPU
	for _, p := range others {
		cpu, err := p.cpu()
		if err != nil {
			return c, err
		}
		c.ours += cpu
	}
	c.all, err = cpuOfAll()
	return c, err
}

// weigher measures the memory of a relay's process, empty and with sessions.
type weigher struct {
	relay    *relay
	sessions int

	rss     int64
	inside  inside
	settled int64
}

// empty measures the process without sessions.
func (w *weigher) empty() (err error) {
	if w.relay.proc == nil {
		return nil
	}
	<-time.After(300 * time.Millisecond) // a program that has just started is still busy
	if w.rss, err = w.relay.proc.rss(); err != nil {
		return err
	}
	if w.inside, err = w.relay.settled(); err != nil {
		return err
	}
	w.settled, err = w.relay.proc.rss()
	return err
}

// weigh measures the process as it is.
func (w *weigher) weigh(r *run) error {
	if w.relay.proc == nil {
		return nil
	}
	rss, err := w.relay.proc.rss()
	r.KB = float64(rss-w.rss) / 1024 / float64(w.sessions)
	r.EmptyMB = float64(w.rss) / (1 << 20)
	return err
}

// idle measures the process as it is, and after it has settled.
func (w *weigher) idle(r *run) error {
	if err := w.weigh(r); err != nil || w.relay.probe == nil {
		return err
	}
	in, err := w.relay.settled()
	if err != nil {
		return err
	}
	rss, err := w.relay.proc.rss()
	r.SettledKB = float64(rss-w.settled) / 1024 / float64(w.sessions)
	r.Goroutines = float64(in.Goroutines-w.inside.Goroutines) / float64(w.sessions)
	return err
}

// The limits of a run that counts; the first is the rule by which this bench's reference
// figures were measured.
const (
	maxTripP95 = 15000 // of a round trip, in microseconds
	maxMissing = 0.02  // of the frames
	maxLateP95 = 5000  // of the load's sending, in microseconds
)

var errNothingSent = errors.New("nothing was sent")

// dirty says why a run does not count; empty if it does. The run of a saturated relay does not
// count either: its CPU time says nothing about its cost.
func (r run) dirty() string {
	l := r.Load
	switch missing := 1 - float64(l.Got)/float64(max(l.Sent, 1)); {
	case l.Failure != "":
		return l.Failure
	case l.Sent == 0:
		return errNothingSent.Error()
	case missing > maxMissing || missing < -maxMissing:
		return fmt.Sprintf("%.1f %% of the frames came back", 100*(1-missing))
	case l.LateP95 > maxLateP95:
		return fmt.Sprintf("the load lags %.1f ms behind (p95)", l.LateP95/1000)
	case l.P95 > maxTripP95:
		return fmt.Sprintf("round trips of %.1f ms (p95)", l.P95/1000)
	}
	return ""
}

// Package load calls a gateway with many callers at once, open loop and in real time, and reports their waits. [Run]
// is the entry point; docs/load.md defines the figures, and the keys of a script. A [Caller] speaks recordings on an
// absolute schedule and plays the answers on a clock. Its conversation is pure: it gets the time and each arrival as
// input. Subpackage report has the measurements and the results.
package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/client/wire"
	"voicegw/internal/bounded"
	"voicegw/internal/process"
)

// Run calls the gateway and reports. If ctx ends, all callers hang up and the report covers the time until then.
// Errors that wrap ErrOptions, ErrSchedule or voice.ErrRecordings mean that no call was made; another error means that
// the gateway's process can't be read.
func Run(ctx context.Context, options Options) (*report.Report, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	schedule, err := makeSchedule(o.Plan)
	if err != nil {
		return nil, err
	}
	library, err := voice.LoadLibrary(o.speech())
	if err != nil {
		return nil, err
	}
	// Each connection is used once, because each caller is another user. ws.Dial copies the transport; other requests
	// use bounded.Client.
	t := bounded.NewTransport()
	t.DialContext, t.DisableKeepAlives = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext, true
	r := &run{Settings: Settings{Options: o, Speech: library, HTTP: &http.Client{Transport: t}}, plan: schedule}
	if r.wire, err = wire.Find(o.Wire); err != nil {
		return nil, err
	}
	if r.wire.Name == wire.NameTwilio {
		if o.Phone.Gateway, err = BaseURL(o.URL); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
		o.Phone.Client = r.HTTP
		r.Carrier = wire.NewCarrier(o.Phone)
		stop, err := r.Carrier.Serve(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
		defer func() { _ = stop() }() // the report matters more
	}
	defer r.HTTP.CloseIdleConnections()
	if o.Audit != "" {
		r.ledger = newLedger()
	}
	if err := awaitReady(ctx, o, r.HTTP); err != nil {
		return nil, err
	}
	if r.watch, err = newWatch(ctx, o, r.HTTP); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

func (o Options) speech() voice.LibraryOptions {
	s := voice.LibraryOptions{Rate: o.InputRate, Paths: o.Audio, Dir: o.ScriptDir}
	for _, t := range o.Script.Turns {
		switch {
		case t.Act != voice.Say:
		case t.Recording == AnyRecording:
			s.Any = true
		case t.Recording != "":
			s.Names = append(s.Names, t.Recording)
		default:
			s.Lines = append(s.Lines, t.Text)
		}
	}
	return s
}

func awaitReady(ctx context.Context, o Options, client *http.Client) error {
	if o.Wait == 0 {
		return nil
	}
	base, err := BaseURL(o.URL)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	isReady := func() bool {
		err = ask(ctx, client, base+"/readyz", nil)
		return err == nil
	}
	if !wait(ctx, o.Progress, "until the gateway is ready", o.Wait, isReady) {
		return fmt.Errorf("the gateway did not become ready within %s: %w", o.Wait, err)
	}
	return nil
}

var healthLimits = bounded.Limits{Service: "the gateway", Bytes: 64 << 10}

// ask gets a status from the gateway and decodes it into out; nil discards it.
func ask(ctx context.Context, client *http.Client, address string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := bounded.Client(client, healthLimits).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	switch {
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers %s", resp.Status)
	case out == nil:
		return nil
	default:
		return json.NewDecoder(resp.Body).Decode(out)
	}
}

type run struct {
	// Fixed after Run has made it. Each call has its own collector and begin.
	Settings
	wire   wire.Wire
	plan   Schedule
	watch  *watch
	ledger *ledger // nil without an audit
}

func (r *run) run(ctx context.Context) (*report.Report, error) {
	if err := r.warmUp(ctx); err != nil {
		return nil, err
	}
	c := report.New()
	r.watch.begin(ctx)
	began := time.Now()
	own, _ := process.Read(0) // unreadable values are omitted from the report
	r.call(ctx, r.plan, c, began, true)
	took := time.Since(began)
	rep := r.describe(began)
	if ctx.Err() != nil {
		rep.Stopped = context.Cause(ctx).Error()
	}
	rep.Generator = generator(own, took)
	c.Add(report.Left, r.watch.end(context.WithoutCancel(ctx)))
	if r.ledger != nil {
		rep.Audit = r.ledger.compare(context.WithoutCancel(ctx), r.Audit, r.Progress)
	}
	rep.Measured(c, took)
	rep.Resources = r.watch.resources(rep, took)
	return rep, nil
}

func (r *run) warmUp(ctx context.Context) error {
	if r.Warmup == 0 {
		return nil
	}
	o := r.Plan
	o.Duration = r.Warmup
	o.Ramp = min(o.Ramp, r.Warmup/2)
	p, err := makeSchedule(o)
	if err != nil {
		return fmt.Errorf("the warm-up: %w", err)
	}
	r.call(ctx, p, report.New(), time.Now(), false)
	return nil
}

func (r *run) call(ctx context.Context, p Schedule, c *report.Collector, began time.Time, counts bool) {
	set := r.Settings
	set.Collector, set.Began = c, began
	if r.ledger != nil && counts {
		set.SawCall = r.ledger.saw
	}
	var callers sync.WaitGroup
	for _, slot := range p.Slots {
		callers.Go(func() { keepCalling(ctx, New(&set, slot.N), slot, c, began) })
	}
	over := make(chan struct{}) // closed when all callers have hung up
	var helpers sync.WaitGroup
	helpers.Go(func() {
		callers.Wait()
		close(over)
	})
	helpers.Go(func() { heartbeat(over, c) })
	r.sample(p, c, began, over, counts)
	helpers.Wait()
}

// The first and the longest wait of a caller before it calls again.
const (
	redial    = time.Second
	maxRedial = 30 * time.Second
)

func keepCalling(ctx context.Context, k *Caller, slot Slot, c *report.Collector, began time.Time) {
	wait := redial
	for call := 1; ; call++ {
		due, ok := slot.Begins(call)
		if !ok || !sleepUntil(ctx, began.Add(due)) {
			return
		}
		if slot.Period > 0 {
			c.Record(report.CallLate, time.Since(began.Add(due)))
		}
		until := slot.Until(due)
		for {
			limit := Limit{HangUp: slot.Period > 0 && until < slot.Stop}
			if until > 0 {
				limit.Until = began.Add(until)
			}
			outcome := k.Call(ctx, limit)
			if outcome == Stopped || until == 0 {
				return
			}
			next := time.Now()
			if outcome == Broken {
				next = next.Add(wait)
				wait = min(2*wait, maxRedial)
			} else {
				wait = redial
			}
			// The rest of a call's time is used even if its session ended.
			if !next.Before(began.Add(until)) || !sleepUntil(ctx, next) {
				break
			}
		}
	}
}

const beat = 20 * time.Millisecond

// heartbeat measures how late a goroutine wakes, on an absolute schedule, until over is closed.
func heartbeat(over <-chan struct{}, c *report.Collector) {
	due := time.Now().Add(beat)
	t := time.NewTimer(beat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			now := time.Now()
			c.Record(report.WakeLag, now.Sub(due))
			for !due.After(now) {
				due = due.Add(beat)
			}
			t.Reset(time.Until(due))
		case <-over:
			return
		}
	}
}

func (r *run) describe(began time.Time) *report.Report {
	p := r.plan.Options
	rep := &report.Report{
		Format: report.Format, Program: r.Program, Began: began.UTC().Truncate(time.Millisecond),
		Target: report.Target{
			URL: r.URL, Wire: r.wire.Name, Unmeasured: r.wire.Unmeasured, Provider: cmp.Or(r.Provider, r.Script.Provider),
			ProviderDelayMS: float64(r.ProviderDelay) / float64(time.Millisecond),
			InputRate:       r.InputRate, OutputRate: r.OutputRate, FrameMS: r.Frame.Milliseconds(),
		},
		Plan: report.Plan{
			Mode: string(p.Mode), Sessions: p.Sessions, RampMS: p.Ramp.Milliseconds(), DurationMS: p.Duration.Milliseconds(),
			WarmupMS:    r.Warmup.Milliseconds(),
			DropEveryMS: r.Drop.Milliseconds(), ReloadEveryMS: r.Reload.Milliseconds(),
			RoamEveryMS: r.Roam.Milliseconds(), AwayMS: r.Away.Milliseconds(),
		},
		Script: report.Script{Name: r.Script.Name, File: r.ScriptFile, Turns: len(r.Script.Turns)},
	}
	switch p.Mode {
	case Step:
		rep.Plan.Steps = p.Steps
	case Soak:
		rep.Plan.CallMS, rep.Plan.RestMS = p.Call.Milliseconds(), p.Rest.Milliseconds()
	}
	for _, s := range r.Speech.All() {
		rep.Speech = append(rep.Speech, report.Speech{
			Name: s.Name, Source: string(s.Source), DurationMS: inMS(s.Duration()), StartMS: inMS(s.Onset()), EndMS: inMS(s.End()),
		})
	}
	return rep
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

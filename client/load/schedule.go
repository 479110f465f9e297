package load

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Mode is the shape of a run.
type Mode string

// The modes.
const (
	// Steady starts all sessions within Ramp and keeps them.
	Steady Mode = "steady"
	// Ramp starts sessions evenly over the whole run.
	Ramp Mode = "ramp"
	// Step starts sessions in Steps groups, one at the start of each part of the run.
	Step Mode = "step"
	// Soak starts sessions within Ramp; each calls for Call, rests for Rest, and calls again.
	Soak Mode = "soak"
)

var modes = []Mode{Steady, Ramp, Step, Soak}

// ScheduleOptions are the options of a schedule. Zero values have defaults.
type ScheduleOptions struct {
	Sessions int  `help:"Number of concurrent sessions (10)." default:"10" placeholder:"N" short:"n"`
	Mode     Mode `help:"Shape of the run: steady, ramp, step or soak (steady)." default:"steady" enum:"steady,ramp,step,soak"`
	// Without a Duration, Steady is one pass through the script. No turn begins after it.
	Duration time.Duration `help:"Duration; without it each session runs the script once (steady only)." placeholder:"TIME" short:"d"`
	// Ramp is at most half of Duration unless set.
	Ramp  time.Duration `help:"Time over which the sessions start (default: 50 ms each)." placeholder:"TIME"`
	Steps int           `help:"Steps of --mode step (5)." default:"5" placeholder:"N"`
	Call  time.Duration `help:"Length of a call in --mode soak (30s)." default:"30s" placeholder:"TIME"`
	Rest  time.Duration `help:"Pause between calls in --mode soak (2s)." default:"2s" placeholder:"TIME"`
}

const (
	defaultSpacing = 50 * time.Millisecond
	defaultSteps   = 5
	defaultCall    = 30 * time.Second
	defaultRest    = 2 * time.Second
)

// The bounds of a run.
const (
	MaxSessions = 20_000
	MaxDuration = 24 * time.Hour
)

// ErrSchedule is wrapped by errors about ScheduleOptions.
var ErrSchedule = errors.New("invalid schedule")

// Slot is one caller's schedule.
type Slot struct {
	// N is the caller's number, from 1.
	N int
	// Start is the start of its first call, and Stop the time after which no turn begins, since the run's start. Stop
	// is zero for one pass through the script.
	Start, Stop time.Duration
	// Call is the length of a call, Period the time from one call's start to the next. Zero means one call until
	// Stop.
	Call, Period time.Duration
}

// Schedule is the schedule of a run.
type Schedule struct {
	Slots []Slot
	// Steps has the start of each group: one for each step of Step, otherwise one at 0.
	Steps   []time.Duration
	Options ScheduleOptions
}

// makeSchedule decides when each session begins and ends. The error wraps ErrSchedule.
//
// The schedule is open loop: it does not wait for the target. A call that is due during the previous one begins when
// that one ends, and the delay is measured; so there are never more sessions than requested.
func makeSchedule(o ScheduleOptions) (Schedule, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Schedule{}, fmt.Errorf("%w: %w", ErrSchedule, err)
	}
	p := Schedule{Options: o, Steps: []time.Duration{0}}
	for n := 1; n <= o.Sessions; n++ {
		p.Slots = append(p.Slots, Slot{N: n, Start: spread(o.Ramp, n-1, o.Sessions), Stop: o.Duration})
	}
	switch o.Mode {
	case Step:
		p.step(o)
	case Soak:
		for i := range p.Slots {
			p.Slots[i].Call, p.Slots[i].Period = o.Call, o.Call+o.Rest
		}
	}
	return p, nil
}

func spread(d time.Duration, i, n int) time.Duration {
	return time.Duration(int64(d) / int64(n) * int64(i))
}

func (p *Schedule) step(o ScheduleOptions) {
	p.Steps = nil
	length := o.Duration / time.Duration(o.Steps)
	first := 0
	for s := range o.Steps {
		at := time.Duration(s) * length
		p.Steps = append(p.Steps, at)
		last := o.Sessions * (s + 1) / o.Steps
		for i := first; i < last; i++ {
			p.Slots[i].Start = at + spread(min(o.Ramp, length/2), i-first, last-first)
		}
		first = last
	}
}

func (o ScheduleOptions) withDefaults() (ScheduleOptions, error) {
	o.Mode = cmp.Or(o.Mode, Steady)
	switch {
	case !slices.Contains(modes, o.Mode):
		return o, fmt.Errorf("unknown mode %q; one of %v", o.Mode, modes)
	case o.Sessions < 1 || o.Sessions > MaxSessions:
		return o, fmt.Errorf("there must be 1 to %d sessions, not %d", MaxSessions, o.Sessions)
	case o.Duration < 0 || o.Duration > MaxDuration:
		return o, fmt.Errorf("the duration must be at most %s, not %s", MaxDuration, o.Duration)
	case o.Duration == 0 && o.Mode != Steady:
		return o, fmt.Errorf("the mode %s needs a duration", o.Mode)
	case o.Ramp < 0 || o.Call < 0 || o.Rest < 0 || o.Steps < 0:
		return o, errors.New("a time or a number is negative")
	case o.Duration > 0 && o.Ramp > o.Duration:
		return o, fmt.Errorf("a ramp of %s is too long for a run of %s", o.Ramp, o.Duration)
	}
	o.Steps = cmp.Or(o.Steps, defaultSteps)
	o.Call, o.Rest = cmp.Or(o.Call, defaultCall), cmp.Or(o.Rest, defaultRest)
	if o.Mode == Step && o.Steps > o.Sessions {
		return o, fmt.Errorf("%d sessions are too few for %d steps", o.Sessions, o.Steps)
	}
	o.Ramp = o.ramp()
	return o, nil
}

func (o ScheduleOptions) ramp() time.Duration {
	if o.Mode == Ramp {
		return o.Duration
	}
	if o.Ramp > 0 {
		return o.Ramp
	}
	ramp := time.Duration(o.Sessions) * defaultSpacing
	if o.Duration > 0 {
		ramp = min(ramp, o.Duration/2)
	}
	return ramp
}

// Begins returns when call k of the slot, from 1, is due; false if there is no such call.
func (s Slot) Begins(k int) (time.Duration, bool) {
	if s.Period == 0 {
		return s.Start, k == 1
	}
	at := s.Start + time.Duration(k-1)*s.Period
	return at, at < s.Stop
}

// Until returns when a call that was due at a time begins no more turns; zero for one pass through the script.
func (s Slot) Until(due time.Duration) time.Duration {
	if s.Call == 0 {
		return s.Stop
	}
	return min(due+s.Call, s.Stop)
}

package load

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	s     = time.Second
	milli = time.Millisecond
)

func scheduled(t *testing.T, o ScheduleOptions) Schedule {
	t.Helper()
	p, err := makeSchedule(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// starts formats the slots' starts and groups.
func starts(p Schedule) string {
	var out []string
	for _, slot := range p.Slots {
		group := 0
		for group < len(p.Steps) && p.Steps[group] <= slot.Start {
			group++
		}
		out = append(out, fmt.Sprintf("%v/%d", slot.Start, group))
	}
	return strings.Join(out, " ")
}

func TestSessionsBeginOneAfterAnother(t *testing.T) {
	for name, c := range map[string]struct {
		o    ScheduleOptions
		want string
	}{
		"steady, by default":  {ScheduleOptions{Sessions: 3}, "0s/1 50ms/1 100ms/1"},
		"steady":              {ScheduleOptions{Sessions: 4, Ramp: 2 * s, Duration: 10 * s}, "0s/1 500ms/1 1s/1 1.5s/1"},
		"many in a short run": {ScheduleOptions{Sessions: 4, Duration: 200 * milli}, "0s/1 25ms/1 50ms/1 75ms/1"},
		"ramp":                {ScheduleOptions{Mode: Ramp, Sessions: 4, Duration: 8 * s}, "0s/1 2s/1 4s/1 6s/1"},
		"step":                {ScheduleOptions{Mode: Step, Sessions: 5, Steps: 2, Duration: 10 * s, Ramp: s}, "0s/1 500ms/1 5s/2 5.333333333s/2 5.666666666s/2"},
		"soak":                {ScheduleOptions{Mode: Soak, Sessions: 2, Duration: time.Minute, Ramp: 10 * s}, "0s/1 5s/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := starts(scheduled(t, c.o)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSoakSchedule(t *testing.T) {
	p := scheduled(t, ScheduleOptions{Mode: Soak, Sessions: 2, Duration: 25 * s, Ramp: 4 * s, Call: 8 * s, Rest: 2 * s})
	var got []string
	for k := 1; ; k++ {
		due, ok := p.Slots[1].Begins(k)
		if !ok {
			break
		}
		got = append(got, fmt.Sprintf("%v-%v", due, p.Slots[1].Until(due)))
	}
	if want := "2s-10s 12s-20s 22s-25s"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestSteadySchedule(t *testing.T) {
	p := scheduled(t, ScheduleOptions{Sessions: 1, Duration: 10 * s})
	slot := p.Slots[0]
	if due, ok := slot.Begins(1); due != 0 || !ok || slot.Until(due) != 10*s {
		t.Errorf("the first call: %v %v until %v", due, ok, slot.Until(due))
	}
	if _, ok := slot.Begins(2); ok {
		t.Error("there is a second call")
	}
}

func TestStepsOfASchedule(t *testing.T) {
	p := scheduled(t, ScheduleOptions{Mode: Step, Sessions: 10, Duration: 50 * s})
	if got, want := fmt.Sprint(p.Steps), "[0s 10s 20s 30s 40s]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestInvalidSchedules(t *testing.T) {
	for name, c := range map[string]struct {
		o    ScheduleOptions
		word string
	}{
		"no session":              {ScheduleOptions{}, "1 to 20000 sessions"},
		"too many":                {ScheduleOptions{Sessions: 20_001}, "1 to 20000 sessions"},
		"no such mode":            {ScheduleOptions{Mode: "burst", Sessions: 1}, "unknown mode"},
		"an endless ramp":         {ScheduleOptions{Mode: Ramp, Sessions: 1}, "needs a duration"},
		"an endless soak":         {ScheduleOptions{Mode: Soak, Sessions: 1}, "needs a duration"},
		"too long":                {ScheduleOptions{Sessions: 1, Duration: 25 * time.Hour}, "at most 24h"},
		"before the start":        {ScheduleOptions{Sessions: 1, Duration: -s}, "at most 24h"},
		"a negative rest":         {ScheduleOptions{Sessions: 1, Rest: -s}, "negative"},
		"a ramp that is too long": {ScheduleOptions{Sessions: 1, Duration: s, Ramp: 2 * s}, "a ramp of 2s"},
		"empty steps":             {ScheduleOptions{Mode: Step, Sessions: 2, Duration: 10 * s}, "for 5 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := makeSchedule(c.o)
			if !errors.Is(err, ErrSchedule) || !strings.Contains(err.Error(), c.word) {
				t.Errorf("got %v, want it to mention %q", err, c.word)
			}
		})
	}
}

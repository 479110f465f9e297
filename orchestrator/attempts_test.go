package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"voicegw/transport"
)

// outage simulates a provider's outage: until it ends, each connection fails after life, or cannot be opened if life
// is 0. It returns when the budget is used up or a connection survives: the time, the number of connections asked
// for, and whether another provider was asked.
func outage(a Attempts, lasts, life time.Duration, f Loss) (ended time.Duration, made int, over, other bool) {
	at := epoch
	a.open(at)
	for made < 100 {
		if life == 0 {
			life = time.Millisecond
		}
		at = at.Add(life)
		try := a.Lost(at, f)
		if try.Over {
			return at.Sub(epoch), made, true, other
		}
		other = other || try.Other
		made++
		at = at.Add(try.After)
		if at.Sub(epoch) >= lasts || try.Other {
			return at.Sub(epoch), made, false, other
		}
		a.open(at)
	}
	return at.Sub(epoch), made, false, other
}

// TestOutages: a session survives an outage of 20 s without another provider, and one of any length with one, with
// few attempts.
func TestOutages(t *testing.T) {
	for _, lasts := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 20 * time.Second} {
		for seed := range uint16(50) {
			for _, life := range []time.Duration{0, 100 * time.Millisecond, 2 * time.Second} {
				_, made, over, _ := outage(NewAttempts(linkPatience, seed), lasts, life, Loss{})
				if over || made > 12 {
					t.Errorf("an outage of %v, connections of %v, seed %d: %d attempts, over: %v", lasts, life, seed, made, over)
				}
			}
		}
	}
	ended, made, over, other := outage(NewAttempts(linkPatience, 1), time.Hour, 0, Loss{Kind: transport.KindRetry, Other: true})
	if over || !other || made != 2 || ended > time.Second {
		t.Errorf("with another provider: %d attempts in %v, over: %v", made, ended, over)
	}
	ended, made, over, _ = outage(NewAttempts(linkPatience, 1), time.Hour, 0, Loss{})
	if !over || ended > linkPatience || ended < 20*time.Second || made > 14 {
		t.Errorf("a provider that never recovers: %d attempts in %v, over: %v", made, ended, over)
	}
}

// TestAttemptsByKind: the table decides for each cause whether to retry the provider, change it or give up.
func TestAttemptsByKind(t *testing.T) {
	for _, k := range transport.Kinds() {
		for _, other := range []bool{false, true} {
			f := k.Failure()
			a := NewAttempts(linkPatience, 7)
			a.open(epoch)
			try := a.Lost(epoch.Add(time.Second), Loss{Kind: k, Other: other})
			want := Attempt{After: try.After, Over: !f.Retry}
			if other && f.Elsewhere && (!f.Retry || k == transport.KindTimeout) {
				want = Attempt{Other: true}
			}
			if try != want {
				t.Errorf("%s, another provider %v: %+v, want %+v", k, other, try, want)
			}
		}
	}
}

// TestWishedPause: the wait that a provider asks for is respected within the budget, and does not delay another
// provider.
func TestWishedPause(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		other bool
		want  string
	}{
		{5 * time.Second, false, "after 5s"}, {29 * time.Second, false, "after 29s"}, {31 * time.Second, false, "over"}, {time.Hour, false, "over"},
		{900 * time.Millisecond, true, "after 900ms"}, {5 * time.Second, true, "other after 0s"}, {time.Hour, true, "other after 0s"},
	} {
		a := NewAttempts(linkPatience, 7)
		a.open(epoch)
		try := a.Lost(epoch.Add(time.Second), Loss{Kind: transport.KindRateLimit, After: tt.after, Other: tt.other})
		got := fmt.Sprintf("after %v", try.After)
		if try.Other {
			got = "other " + got
		}
		if try.Over {
			got = "over"
		}
		if got != tt.want {
			t.Errorf("a wish of %v, another provider %v: %s, want %s", tt.after, tt.other, got, tt.want)
		}
	}
}

// TestBothProvidersFail: two failing providers are tried in turn and share one budget.
func TestBothProvidersFail(t *testing.T) {
	a, at, turns, made := NewAttempts(linkPatience, 3), epoch, 0, 0
	a.open(at)
	for made < 100 {
		try := a.Lost(at, Loss{Kind: transport.KindServer, Other: true})
		if try.Over {
			break
		}
		if made++; try.Other {
			turns++
		}
		at = at.Add(try.After)
	}
	if took := at.Sub(epoch); took > linkPatience || made > 16 || turns < 4 {
		t.Errorf("%d attempts, %d changes of provider, in %v", made, turns, took)
	}
	a.proved()
	if try := a.Lost(at, Loss{Kind: transport.KindAuth, Other: true}); !try.Other || try.Over {
		t.Fatalf("the first refusal: %+v", try)
	}
	if try := a.Lost(at, Loss{Kind: transport.KindQuota, Other: true}); !try.Over {
		t.Errorf("after both refusals: %+v", try)
	}
}

// TestGoAwayStorm: a provider that limits the time of each connection, by notices, closes or both, causes few
// connections.
func TestGoAwayStorm(t *testing.T) {
	for _, left := range []time.Duration{0, time.Second, 5 * time.Second, 10 * time.Second, 50 * time.Second} {
		for n := range 4 {
			closes, failover := n%2 == 1, n >= 2
			t.Run(fmt.Sprintf("%v left, closes %v, failover %v", left, closes, failover), func(t *testing.T) {
				caps := capsHearing
				caps.History = transport.HistoryItems
				s := NewState(caps, NewRules(Policy{Relink: true, Failover: failover}), toolbox(), testMark, epoch)
				other := false
				made, at, opened, ready, ended := 0, epoch, epoch, epoch, false
				take := func(in Input) {
					next, actions := Step(s, at, in)
					s = next
					for _, a := range actions {
						switch a := a.(type) {
						case SwitchLink:
							made, ready, other = made+1, at.Add(a.After), other != a.Other
						case End:
							ended = true
						}
					}
				}
				begin := func() {
					if opened = at; other {
						return // the other provider works
					}
					take(FromModel{transport.GoAway{TimeLeft: left}})
				}
				take(Began{})
				begin()
				const most = 5 * time.Minute
				for !ended && at.Sub(epoch) < most {
					at = at.Add(10 * time.Millisecond)
					switch {
					case s.down() && at.Before(ready):
					case s.down():
						take(LinkBack{Caps: caps, How: LinkReplayed})
						begin()
					case closes && !other && at.Sub(opened) >= left:
						take(LinkLost{Kind: transport.KindExpired})
					default:
						take(Tick{})
					}
				}
				perMinute := float64(made) / at.Sub(epoch).Minutes()
				if perMinute > 30 || made == 0 {
					t.Errorf("%d connections in %v", made, at.Sub(epoch))
				}
				if young := closes && left < provenAfter && !failover; ended != young {
					t.Errorf("after %v the session has ended: %v", at.Sub(epoch), ended)
				}
			})
		}
	}
}

// TestSwitchStorm: an operator who switches agents continuously causes few connections and ends no session.
func TestSwitchStorm(t *testing.T) {
	caps := capsDeaf
	caps.History = transport.HistoryContent
	s := NewState(caps, NewRules(Policy{Relink: true}), toolbox(), testMark, epoch)
	made, ready := 0, epoch
	for at := epoch; at.Sub(epoch) < time.Minute; at = at.Add(20 * time.Millisecond) {
		var in Input = SwitchAgent{&NextAgent{From: "a", Name: "b", Elsewhere: true}, "an operator"}
		if at.Equal(epoch) {
			in = Began{}
		}
		if s.down() && !at.Before(ready) {
			in = LinkBack{Caps: caps, How: LinkReplayed}
		}
		next, actions := Step(s, at, in)
		s = next
		for _, a := range actions {
			switch a := a.(type) {
			case SwitchLink:
				made, ready = made+1, at.Add(a.After)
			case End:
				t.Fatalf("the session has ended after %v", at.Sub(epoch))
			}
		}
	}
	if made == 0 || made > 30 {
		t.Errorf("%d connections in a minute", made)
	}
}

package meter

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/store/storetest"
)

// meter begins a meter of a node.
func meter(t *testing.T, h *storetest.Usage, node string, limits auth.Limits) *Meter {
	t.Helper()
	m, err := New(context.Background(), Options{Store: h, Node: node, User: limits, Key: func(id string) auth.Limits { return keyLimits[id] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // also after a failure
		m.end()
		m.loops.Wait()
	})
	return m
}

// keyLimits are what the keys of the tests may use.
var keyLimits = map[string]auth.Limits{"key:1": {Sessions: 1, NewPerSecond: 0.5, CostPerDay: 2}, "key:2": {NewPerSecond: 0.5}}

func closeMeter(t *testing.T, m *Meter) {
	t.Helper()
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func enter(t *testing.T, m *Meter, who Who) *Session {
	t.Helper()
	s, no := m.Enter(who, false)
	if no != nil {
		t.Fatalf("%+v is refused: %v", who, no)
	}
	return s
}

func refused(t *testing.T, m *Meter, who Who, want string) *Refusal {
	t.Helper()
	s, no := m.Enter(who, false)
	if no == nil {
		s.Leave()
		t.Fatalf("%s lets in %+v", want, who)
	}
	if no.Limit != want {
		t.Fatalf("refused by %s instead of %s", no.Limit, want)
	}
	return no
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

func spend(micros cost.Micros) cost.Amount { return cost.Amount{Micros: micros} }

var ada = Who{User: "ada"}

// TestCountedOverNodes: what two nodes count is one sum, and a node that begins later knows it.
func TestCountedOverNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		limits := auth.Limits{CostPerDay: 1}
		a, b := meter(t, h, "a", limits), meter(t, h, "b", limits)
		sa, sb := enter(t, a, ada), enter(t, b, ada)
		sa.Used(spend(300_000), cost.Usage{InputText: 5})
		sb.Used(spend(500_000), cost.Usage{InputText: 7})
		sb.Turn()
		a.Turn(Who{User: "ada", Key: "key:chat"}, spend(100_000), cost.Usage{OutputText: 1})
		pass(3 * time.Second) // seconds of voice, and then nothing
		synctest.Wait()
		sa.Leave()
		sb.Leave()
		sb.Leave()
		want := cost.Sum{Amount: spend(900_000), Sessions: 2, Turns: 2, VoiceMS: 6000, Tokens: cost.Usage{InputText: 12, OutputText: 1}}
		pass(writeEvery + beat)
		synctest.Wait()
		for _, m := range []*Meter{a, b} {
			days, _, err := m.Report(context.Background(), Filter{User: "ada", First: time.Now(), Last: time.Now()})
			if diff := cmp.Diff([]Day{{Date: dayOf(time.Now()), Sum: want}}, days); diff != "" || err != nil {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		}
		if days, _, _ := b.Report(context.Background(), Filter{Key: "key:chat", First: time.Now(), Last: time.Now()}); len(days) != 1 || days[0].Micros != 100_000 {
			t.Errorf("by the key: %+v", days)
		}
		if days, _, _ := b.Report(context.Background(), Filter{User: "eve", First: time.Now(), Last: time.Now()}); len(days) != 0 {
			t.Errorf("somebody else's: %+v", days)
		}
		closeMeter(t, a)
		c := meter(t, h, "c", limits)
		s := enter(t, c, ada)
		s.Used(spend(100_000), cost.Usage{})
		if no := refused(t, c, ada, LimitUserCost); no.Quota != 1_000_000 || !no.Day() || no.RetryIn <= 0 || no.RetryIn > day {
			t.Errorf("%+v", no)
		}
		synctest.Wait()
		refused(t, b, ada, LimitUserCost) // it was told
		s.Leave()
		closeMeter(t, b)
		closeMeter(t, c)
	})
}

// TestWrites: an entry is written at most every 5 s, at the end at once, and what the store did not
// take is written later. A process that is killed loses what it has counted since.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		m := meter(t, h, "a", auth.Limits{})
		for range 60 {
			m.Turn(ada, spend(1), cost.Usage{})
			pass(500 * time.Millisecond)
		}
		stored, writes := h.Stored(dayOf(time.Now()), "a", "ada", "")
		for i := 1; i < len(writes); i++ {
			if gap := writes[i].Sub(writes[i-1]); gap < writeEvery {
				t.Errorf("written again after %v", gap)
			}
		}
		if len(writes) < 5 {
			t.Errorf("written %d times in 30 s", len(writes))
		}
		if lost := 60 - stored.Micros; lost < 0 || lost > 11 { // two a second, for 5 s and the beat
			t.Errorf("a process that is killed now loses %d of 60 turns", lost)
		}
		h.Down(true)
		m.Turn(ada, spend(1), cost.Usage{})
		pass(time.Minute)
		h.Down(false)
		pass(writeEvery + beat)
		m.Turn(ada, spend(1), cost.Usage{})
		closeMeter(t, m)
		closeMeter(t, m)
		if got, _ := h.Stored(dayOf(time.Now()), "a", "ada", ""); got.Micros != 62 || got.Turns != 62 {
			t.Errorf("stored at the end: %+v", got)
		}
	})
}

// TestHeardLess: messages that are lost, repeated or late count nothing twice and nothing less; the
// store brings what was not heard.
func TestHeardLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		limits := auth.Limits{CostPerDay: 0.000010}
		a, b := meter(t, h, "a", limits), meter(t, h, "b", limits)
		h.Deaf(true)
		a.Turn(ada, spend(10), cost.Usage{})
		synctest.Wait()
		if no := b.Allows(ada); no != nil {
			t.Fatalf("b has heard it: %v", no)
		}
		pass(rereadEvery + beat)
		synctest.Wait()
		if no := b.Allows(ada); no == nil {
			t.Error("b has not read it")
		}
		today := dayOf(time.Now())
		for _, wrong := range []string{
			``, `{`, `[]`, `{"node":"a","day":"` + today + `","user":"ada","sum":{"micros":-5}}`,
			`{"node":"a","day":"` + today + `","user":"ada","sum":{"micros":3}}`, // an older one
			`{"node":"a","day":"1999-01-01","user":"eve","sum":{"micros":900}}`, `{"node":"a","user":"eve","running":-1}`,
			`{"node":"b","day":"` + today + `","user":"eve","sum":{"micros":900}}`, `{"day":"` + today + `","user":"eve","sum":{"micros":900}}`,
		} {
			b.hear([]byte(wrong))
		}
		for range 3 {
			b.hear([]byte(`{"node":"z","day":"` + today + `","user":"bob","sum":{"micros":4}}`))
		}
		if no := b.Allows(Who{User: "bob"}); no != nil {
			t.Errorf("a message that came three times has counted more than once: %v", no)
		}
		if b.Allows(ada) == nil || b.Allows(Who{User: "eve"}) != nil {
			t.Error("a wrong message has counted")
		}
		closeMeter(t, a)
		closeMeter(t, b)
	})
}

// TestLimits: each limit of a user and of a key refuses, with its numbers, and lets in again.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		a := meter(t, h, "a", auth.Limits{Sessions: 2, NewPerSecond: 4, MinutesPerDay: 1})
		b := meter(t, h, "b", auth.Limits{Sessions: 2, NewPerSecond: 4, MinutesPerDay: 1})
		one := enter(t, a, ada)
		two := enter(t, a, ada)
		synctest.Wait()
		if no := refused(t, b, ada, LimitUserSessions); no.Quota != 2 || no.Window != 0 || no.RetryIn <= 0 {
			t.Errorf("%+v", no)
		}
		two.Leave()
		synctest.Wait()
		enter(t, b, ada).Leave()
		for range 3 {
			enter(t, b, ada).Leave()
		}
		if no := refused(t, b, ada, LimitUserRate); no.Quota != 4 || no.Window != time.Second || no.RetryIn <= 0 || no.RetryIn > time.Second {
			t.Errorf("%+v", no)
		}
		pass(time.Second)
		enter(t, b, ada).Leave()
		pass(time.Minute)
		synctest.Wait()
		if no := refused(t, b, ada, LimitUserMinutes); no.Quota != 60 || !no.Day() {
			t.Errorf("%+v", no)
		}
		one.Leave()

		k := Who{User: "bob", Key: "key:1"}
		three := enter(t, a, k)
		other := k
		other.User = "eve"
		synctest.Wait()
		refused(t, b, other, LimitKeySessions)
		three.Used(spend(2_000_000), cost.Usage{})
		three.Leave()
		synctest.Wait()
		if no := refused(t, b, other, LimitKeyCost); no.Quota != 2_000_000 {
			t.Errorf("%+v", no)
		}
		if no := b.Allows(k); no == nil || no.Limit != LimitKeyCost || no.Error() == "" {
			t.Errorf("%+v", no)
		}
		if no := b.Allows(Who{User: "bob"}); no != nil {
			t.Errorf("bob without that key: %v", no)
		}
		k2 := Who{User: "bob", Key: "key:2"}
		enter(t, a, k2).Leave()
		if no := refused(t, a, k2, LimitKeyRate); no.RetryIn != 2*time.Second {
			t.Errorf("%+v", no)
		}
		if s, no := a.Enter(k2, true); no != nil {
			t.Errorf("a session that goes on is refused: %v", no)
		} else {
			s.Leave()
		}
		if f := b.Figures(); f.Refused[Limited{LimitKeyCost, NoKey}] != 2 || f.Refused[Limited{LimitUserSessions, NoKey}] != 1 {
			t.Errorf("%+v", f)
		}
		closeMeter(t, a)
		closeMeter(t, b)
	})
}

// TestDayIsOver: what was used today counts for nothing tomorrow, and stays in the report.
func TestDayIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		m := meter(t, h, "a", auth.Limits{CostPerDay: 1})
		s := enter(t, m, ada)
		states := make(chan State, 9)
		s.Watch(func(st State) { states <- st })
		s.Used(spend(1_000_000), cost.Usage{})
		no := m.Allows(ada)
		if no == nil {
			t.Fatal("it is not spent")
		}
		first := time.Now()
		pass(no.RetryIn + 2*beat)
		synctest.Wait()
		if no := m.Allows(ada); no != nil {
			t.Errorf("the next day: %v", no)
		}
		s.Used(spend(5), cost.Usage{})
		s.Leave()
		closeMeter(t, m)
		close(states)
		var got []State
		for st := range states {
			got = append(got, st)
		}
		if diff := cmp.Diff([]State{Spent, Fine}, got); diff != "" {
			t.Error(diff)
		}
		days, _, err := m.Report(context.Background(), Filter{First: first, Last: time.Now()})
		if err != nil || len(days) != 2 || days[0].Micros != 1_000_000 || days[1].Micros != 5 {
			t.Errorf("%v: %+v", err, days)
		}
	})
}

// TestSessionsAreTold: a session hears once that a limit is near, and once that it is reached, whoever
// has used it and wherever.
func TestSessionsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		a, b := meter(t, h, "a", auth.Limits{CostPerDay: 0.000100}), meter(t, h, "b", auth.Limits{CostPerDay: 0.000100})
		s := enter(t, a, ada)
		var states []State
		s.Watch(func(st State) { states = append(states, st) })
		for _, step := range []struct {
			micros cost.Micros
			want   []State
		}{{79, nil}, {1, []State{Near}}, {19, []State{Near}}, {1, []State{Near, Spent}}, {50, []State{Near, Spent}}} {
			b.Turn(ada, spend(step.micros), cost.Usage{})
			synctest.Wait()
			if diff := cmp.Diff(step.want, states); diff != "" {
				t.Fatalf("after %d more: %s", step.micros, diff)
			}
		}
		late, _ := a.Enter(ada, true)
		var lateStates []State
		late.Watch(func(st State) { lateStates = append(lateStates, st) })
		synctest.Wait()
		if len(lateStates) != 1 || lateStates[0] != Spent {
			t.Errorf("a session that goes on here was told %v", lateStates)
		}
		late.Leave()
		s.Leave()
		closeMeter(t, a)
		closeMeter(t, b)
	})
}

// TestCountingAsksNoOtherSession: what one session of a user counts is no work for the user's others, until
// they must be told: a user who is nobody in particular may have thousands.
func TestCountingAsksNoOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := meter(t, storetest.NewUsage(), "a", auth.Limits{CostPerDay: 0.000100})
		const others = 50
		told := 0
		all := make([]*Session, others)
		for i := range all {
			all[i] = enter(t, m, ada)
			all[i].Watch(func(State) { told++ })
		}
		synctest.Wait()
		count := func(micros cost.Micros) (asked int) {
			m.mu.Lock() // the meter's goroutine cannot ask them yet
			defer m.mu.Unlock()
			m.add(ada, cost.Sum{Amount: spend(micros)}, time.Now())
			return len(m.changed)
		}
		for i, step := range []struct {
			micros cost.Micros
			asked  int
		}{{1, 0}, {78, 0}, {1, others}, {10, 0}, {10, others}, {5, 0}} {
			if asked := count(step.micros); asked != step.asked {
				t.Errorf("step %d: %d sessions are asked, want %d", i, asked, step.asked)
			}
			synctest.Wait()
		}
		if told != 2*others {
			t.Errorf("%d sessions were told, want each of %d twice", told, others)
		}
		for _, s := range all {
			s.Leave()
		}
		closeMeter(t, m)
	})
}

// TestKilledNode: the sessions of a process that was killed give their places back.
func TestKilledNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		a, b := meter(t, h, "a", auth.Limits{Sessions: 1}), meter(t, h, "b", auth.Limits{Sessions: 1})
		enter(t, a, ada)
		pass(10 * runningLife)
		synctest.Wait()
		refused(t, b, ada, LimitUserSessions)
		a.end() // it does nothing any more
		pass(runningLife + tellEvery + beat)
		synctest.Wait()
		enter(t, b, ada).Leave()
		a.loops.Wait()
		closeMeter(t, b)
	})
}

// TestNothingGrows: entries and paces are bounded, whoever comes.
func TestNothingGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		h.Deaf(true)
		m := meter(t, h, "a", auth.Limits{NewPerSecond: 1})
		for i := range mostPaces + 5 {
			s := enter(t, m, Who{User: time.Duration(i).String()})
			s.Leave()
		}
		if len(m.paces) > mostPaces {
			t.Errorf("%d paces", len(m.paces))
		}
		for i := range mostEntries + 10 {
			m.mu.Lock()
			m.learn(message{Node: "x", Day: m.day, User: strconv.Itoa(i), Sum: cost.Sum{Amount: spend(1)}}, time.Now())
			m.mu.Unlock()
		}
		if f := m.Figures(); f.Entries > mostEntries || f.Dropped == 0 {
			t.Errorf("%+v", f)
		}
		before := m.Figures().Dropped
		m.Turn(Who{User: "one too many"}, spend(1), cost.Usage{})
		if n := m.Figures().Dropped - before; n != 1 {
			t.Errorf("what had no room was counted %d times as dropped", n)
		}
		closeMeter(t, m)
		if f := m.Figures(); f.Unwritten != 0 {
			t.Errorf("after the end: %+v", f)
		}
	})
}

// FuzzHear: whatever comes from other processes, nothing is counted below zero, and nothing of this
// process is changed.
func FuzzHear(f *testing.F) {
	f.Add([]byte(`{"node":"x","day":"2026-11-25","user":"ada","sum":{"micros":5,"voice_ms":7}}`))
	f.Add([]byte(`{"node":"x","user":"ada","key":"k","running":3}`))
	f.Add([]byte(`{"node":"a","running":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &Meter{
			opts: Options{Node: "a", User: auth.Limits{Sessions: 1, CostPerDay: 1}, Logger: slog.New(slog.DiscardHandler)}, day: dayOf(time.Now()),
			entries: map[slot]*entry{}, totals: map[subject]*total{}, dirty: map[slot]*entry{}, changed: map[*Session]struct{}{},
		}
		for range 2 {
			m.hear(data)
		}
		for s, e := range m.entries {
			if s.node == "a" || e.running < 0 || e.sum.Micros < 0 || e.sum.VoiceMS < 0 {
				t.Errorf("%+v: %+v", s, e)
			}
		}
		for of, is := range m.totals {
			if is.running < 0 || is.micros < 0 || is.voiceMS < 0 {
				t.Errorf("%+v: %+v", of, is)
			}
		}
	})
}

// TestDoor: a user who has no session to come back to is refused before it says what it wants, by each limit that
// would refuse it then; nothing is counted by asking.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := storetest.NewUsage()
		m, other := meter(t, h, "a", auth.Limits{CostPerDay: 1}), meter(t, h, "b", auth.Limits{CostPerDay: 1})
		door := func(m *Meter, who Who, returns bool, want string) {
			t.Helper()
			is := ""
			no := m.Refuses(who, returns)
			if no != nil {
				is = no.Limit
			}
			if is != want || no != nil && no.RetryIn <= 0 {
				t.Errorf("%+v, may come back %t: %q (%+v), want %q", who, returns, is, no, want)
			}
		}
		ada := Who{User: "ada", Key: "key:1"}
		for range 10 {
			door(m, ada, true, "")
		}
		s := enter(t, m, ada)
		synctest.Wait()
		door(m, ada, true, "") // it may come back
		door(other, ada, true, "")
		door(m, ada, false, LimitKeySessions)
		door(m, Who{User: "bob", Key: "key:1"}, true, "") // one of the key's sessions may be his
		door(m, Who{User: "bob"}, true, "")
		s.Used(cost.Amount{Micros: 1_000_000}, cost.Usage{})
		s.Leave()
		synctest.Wait()
		for _, at := range []*Meter{m, other} {
			door(at, ada, true, LimitUserCost)
		}
		door(m, Who{User: "bob", Key: "key:1"}, true, LimitKeyRate)
		<-time.After(2 * time.Second)
		door(m, Who{User: "bob", Key: "key:1"}, true, "")
		door(m, Who{}, true, "")
		if got := m.Figures().Refused; got[Limited{LimitKeySessions, NoKey}] != 1 || got[Limited{LimitUserCost, NoKey}] != 1 || got[Limited{LimitKeyRate, NoKey}] != 1 {
			t.Errorf("counted were %v", got)
		}
		var none *Meter
		door(none, ada, true, "")
		closeMeter(t, m)
		closeMeter(t, other)
	})
}

// TestRefusalsByName: refusals are counted by the limit and the name of the key, of which there are only so
// many.
func TestRefusalsByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(context.Background(), Options{
			Store: storetest.NewUsage(), Node: "a", Key: func(string) auth.Limits { return auth.Limits{CostPerDay: 1} },
			Name: func(id string) string { return id[len("key:"):] },
		})
		if err != nil {
			t.Fatal(err)
		}
		spent := cost.Amount{Micros: 1_000_000}
		for i := range 2 * mostNames {
			who := Who{Key: "key:k" + strconv.Itoa(i)}
			m.Turn(who, spent, cost.Usage{})
			if m.Allows(who) == nil {
				t.Fatalf("%+v is allowed", who)
			}
		}
		m.Turn(Who{Key: "key:"}, spent, cost.Usage{})
		if m.Allows(Who{Key: "key:"}) == nil {
			t.Fatal("it is allowed")
		}
		f := m.Figures()
		sum := int64(0)
		for _, n := range f.Refused {
			sum += n
		}
		if f.Refused[Limited{LimitKeyCost, "k0"}] != 1 || f.Refused[Limited{LimitKeyCost, OtherKey}] < mostNames || len(f.Refused) > mostNames+1 || sum != 2*mostNames+1 {
			t.Errorf("%d series, %d refusals: %v", len(f.Refused), sum, f.Refused)
		}
		closeMeter(t, m)
	})
}

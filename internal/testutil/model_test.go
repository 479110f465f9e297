package testutil

import (
	"strings"
	"testing"
)

// two is the state of two processes that need both locks.
type two struct {
	lock [2]int8 // 0: free, else the number of the process that holds it
	at   [2]int8 // 0 to 2: the number of locks; 3: done
}

// locks is the protocol of two processes that take two locks, each in its order.
func locks(order [2][2]int) Protocol[two] {
	return Protocol[two]{
		Steps: func(s two, can Can[two]) {
			for i, name := range []string{"Ada", "Eve"} {
				if s.at[i] < 2 {
					which := order[i][s.at[i]]
					if s.lock[which] == 0 {
						n := s
						n.lock[which], n.at[i] = int8(i+1), s.at[i]+1
						can(name, "takes a lock", n)
					}
				}
				if s.at[i] == 2 {
					n := s
					n.at[i] = 3
					for l := range n.lock {
						if n.lock[l] == int8(i+1) {
							n.lock[l] = 0
						}
					}
					can(name, "gives both back", n)
				}
			}
		},
		Promises: []Promise[two]{{Name: "not both at once", Broken: func(s two) string {
			if s.at == [2]int8{2, 2} {
				return "both have both locks"
			}
			return ""
		}}},
		End: func(s two) bool { return s.at == [2]int8{3, 3} },
	}
}

func exploreAll[S comparable](t *testing.T, p Protocol[S]) Report {
	t.Helper()
	r, err := Explore(p, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStates(t *testing.T) {
	if r := exploreAll(t, locks([2][2]int{{0, 1}, {0, 1}})); r.Violation != nil || r.States != 12 || r.Steps != 12 || r.Depth != 6 {
		t.Errorf("%v, %v", r, r.Violation)
	}
	if _, err := Explore(locks([2][2]int{{0, 1}, {0, 1}}), 11); err == nil {
		t.Error("no error above the limit of states")
	}
}

func TestDeadlock(t *testing.T) {
	v := exploreAll(t, locks([2][2]int{{0, 1}, {1, 0}})).Violation
	if v == nil || v.Promise != Reachable || !strings.Contains(v.String(), "   1  Ada: takes a lock\n   2  Eve: takes a lock\n") {
		t.Errorf("found %v", v)
	}
}

// TestShortestTrace: a violation has the shortest trace to the state.
func TestShortestTrace(t *testing.T) {
	p := Protocol[int]{
		Steps: func(s int, can Can[int]) {
			if s < 10 {
				can("", "adds one", s+1)
				can("", "adds three", s+3)
			}
		},
		Promises: []Promise[int]{{Name: "never 7", Broken: func(s int) string {
			if s == 7 {
				return "it is 7"
			}
			return ""
		}}},
		End:  func(int) bool { return true },
		Show: func(int) string { return "seven" },
	}
	v := exploreAll(t, p).Violation
	if v == nil || v.Promise != "never 7" || v.How != "it is 7" || len(v.Trace) != 3 || v.Last != "seven" ||
		!strings.HasPrefix(v.Trace[0], "the world: adds ") || !strings.Contains(v.String(), "the state then: seven") {
		t.Errorf("found %v", v)
	}
}

// TestFairness: a loop is a violation only if it can continue while each process gets its turns. The world may
// stop or continue at any time.
func TestFairness(t *testing.T) {
	// 0 and 1 form the loop, 2 is the end.
	round := func(by, out string, outOf ...int) Protocol[int] {
		return Protocol[int]{
			Steps: func(s int, can Can[int]) {
				if s < 2 {
					can(by, "goes round", 1-s)
				}
				for _, o := range outOf {
					if s == o {
						can(out, "leaves", 2)
					}
				}
			},
			End: func(s int) bool { return s == 2 },
		}
	}
	for name, c := range map[string]struct {
		p    Protocol[int]
		loop bool
		ok   bool
	}{
		"another can always leave":           {p: round("round", "out", 0, 1), ok: true},
		"another can leave sometimes":        {p: round("round", "out", 1), loop: true},
		"the same process may loop or leave": {p: round("round", "round", 0, 1), loop: true},
		"the world loops":                    {p: round("", "out", 0, 1), ok: true},
		"only the world leaves":              {p: round("round", "", 0, 1), loop: true},
		"only the world acts":                {p: round("", "", 0, 1), loop: true},
	} {
		v := exploreAll(t, c.p).Violation
		if (v == nil) != c.ok || v != nil && (v.Promise != Reached || (len(v.Loop) > 0) != c.loop) {
			t.Errorf("%s: %v", name, v)
		}
	}
	waits := Protocol[int]{
		Steps: func(s int, can Can[int]) {
			if s == 0 {
				can("", "perhaps", 1)
			}
		},
		End: func(s int) bool { return s == 1 },
	}
	if v := exploreAll(t, waits).Violation; v == nil || v.Promise != Reached || len(v.Loop) > 0 || len(v.Trace) > 0 {
		t.Errorf("a protocol that waits for the world: %v", v)
	}
}

package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/registry/spec"
)

// hoursRegistry has one unconditional tool and several conditional ones.
func hoursRegistry(t testing.TB, feature func(agent, name string) bool) *Registry {
	t.Helper()
	probe := Bind(func(_ context.Context, call Call[json.RawMessage, none]) (Result, error) {
		return Result{Data: call.Args}, nil
	})
	handlers := map[string]Handler{}
	one := func(id, availability string) Entry {
		handlers[id] = probe
		e, _, _ := simple(t, nil, `toolId: "`+id+`"`, "availability: "+availability)
		return e
	}
	return mustLoad(t, Options{Handlers: handlers, Feature: feature},
		one("always", "null"),
		one("office", `{"times": [{"weekdays": ["mon", "fri"], "from": "09:00", "to": "17:00"}, {"since": "2026-12-24", "until": "2026-12-26", "to": "12:00"}], "zone": "Europe/Oslo"}`),
		one("desk", `{"agents": ["desk"]}`),
		one("staff", `{"scopes": ["a.b", "c.d"]}`),
		one("beta", `{"features": ["x", "y"]}`),
		one("both", `{"agents": ["desk"], "times": [{"from": "09:00"}], "zone": "UTC"}`))
}

func clock(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestAvailable: a conversation has the tools whose conditions all hold; calls are also prepared for tools that are
// only outside their hours, and for no others.
func TestAvailable(t *testing.T) {
	whole := hoursRegistry(t, func(agent, name string) bool { return name == "x" || agent == "lab" }).Snapshot()
	const monday = "2026-11-23T08:00:00Z" // 9:00 in Oslo
	for name, c := range map[string]struct {
		at     string
		agent  string
		scopes []string
		want   []string
		closed []string
	}{
		"before":                    {"2026-11-23T07:59:59Z", "", nil, []string{"always"}, []string{"office"}},
		"as it opens":               {monday, "", nil, []string{"always", "office"}, nil},
		"at the end":                {"2026-11-23T15:59:59Z", "", nil, []string{"always", "office"}, nil},
		"as it closes":              {"2026-11-23T16:00:00Z", "", nil, []string{"always"}, []string{"office"}},
		"in summer time":            {"2026-07-20T07:00:00Z", "", nil, []string{"always", "office"}, nil},
		"on another day":            {"2026-11-24T10:00:00Z", "", nil, []string{"always"}, []string{"office"}},
		"on a special day":          {"2026-12-24T10:59:59Z", "", nil, []string{"always", "office"}, nil},
		"until noon":                {"2026-12-26T11:00:00Z", "", nil, []string{"always"}, []string{"office"}},
		"an agent":                  {monday, "desk", nil, []string{"always", "desk", "office"}, []string{"both"}},
		"an agent in its hours":     {"2026-11-23T09:00:00Z", "desk", nil, []string{"always", "both", "desk", "office"}, nil},
		"one of two scopes":         {monday, "", []string{"c.d"}, []string{"always", "office", "staff"}, nil},
		"another scope":             {monday, "", []string{"c"}, []string{"always", "office"}, nil},
		"both features":             {monday, "lab", nil, []string{"always", "beta", "office"}, nil},
		"an agent that is not desk": {"2026-11-23T09:00:00Z", "desks", nil, []string{"always", "office"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			session := Session{Mode: spec.ModeVoice, Agent: c.agent, Scopes: c.scopes, Now: clock(t, c.at)}
			s := whole.For(Selection{Session: session})
			if got := slices.DeleteFunc(idsOf(s, spec.ModeVoice), isBuiltin); !slices.Equal(got, c.want) {
				t.Errorf("the tools are %v, want %v", got, c.want)
			}
			describe, _ := s.Tool(spec.DescribeTool)
			for _, id := range []string{"always", "office", "desk", "staff", "beta", "both"} {
				p, refused := s.Prepare(id, spec.ModeVoice, nil)
				has, closed := slices.Contains(c.want, id), slices.Contains(c.closed, id)
				if (p != nil) != (has || closed) || p == nil && refused.Error.Type != ErrorNotFound {
					t.Errorf("%s: %+v", id, refused)
				}
				if p != nil && (p.Unavailable(session) == nil) != has {
					t.Errorf("%s: refused is %v", id, p.Unavailable(session))
				}
				if strings.Contains(string(describe.Forms.OpenAI), id) != has {
					t.Errorf("%s: the offered guides are %s", id, describe.Forms.OpenAI)
				}
			}
		})
	}
}

// TestUnavailable: the refusal of a call after its window says when the tool is available again.
func TestUnavailable(t *testing.T) {
	features := map[string]bool{"x": true, "y": true}
	whole := hoursRegistry(t, func(_, name string) bool { return features[name] }).Snapshot()
	during := Session{Mode: spec.ModeText, Now: clock(t, "2026-11-23T10:00:00Z")}
	s := whole.For(Selection{Session: during})
	for at, want := range map[string]string{ // the value is empty if the call runs
		"2026-11-23T15:59:59Z": "",
		"2026-11-23T16:00:00Z": "2026-11-27T08:00:00Z Fri 27 Nov 2026, 09:00 (Europe/Oslo)",
		"2026-11-27T16:00:00Z": "2026-11-30T08:00:00Z Mon 30 Nov 2026, 09:00 (Europe/Oslo)",
		"2026-12-22T16:00:00Z": "2026-12-23T23:00:00Z Thu 24 Dec 2026, 00:00 (Europe/Oslo)",
		"2026-03-27T16:00:00Z": "2026-03-30T07:00:00Z Mon 30 Mar 2026, 09:00 (Europe/Oslo)", // in summer time
	} {
		p, _ := s.Prepare("office", spec.ModeText, nil)
		env := p.Unavailable(Session{Mode: spec.ModeText, Now: clock(t, at)})
		if (env == nil) != (want == "") {
			t.Fatalf("%s: %+v", at, env)
		}
		if env == nil {
			continue
		}
		opens, words, _ := strings.Cut(want, " ")
		if e := env.Error; e.Type != ErrorUnavailable || !e.Retryable || !strings.Contains(e.Message, words) || string(e.Details) != `{"reason":"time","available_at":"`+opens+`"}` || env.Meta.Tool != "office" {
			t.Errorf("%s: %+v, %s", at, e, e.Details)
		}
	}
	p, _ := s.Prepare("beta", spec.ModeText, nil)
	if p.Unavailable(during) != nil {
		t.Error("a tool whose features are on is refused")
	}
	features["y"] = false
	if env := p.Unavailable(during); env == nil || env.Error.Retryable || string(env.Error.Details) != `{"reason":"feature"}` || strings.Contains(env.Error.Message, "again from") {
		t.Errorf("the feature was switched off: %+v", env)
	}
}

// TestAvailabilityIsOver: the refusal after the last window names no later time, and a tool that was unavailable when
// the session began stays refused.
func TestAvailabilityIsOver(t *testing.T) {
	e, _, _ := simple(t, nil, `availability: {"times": [{"since": "2026-11-23", "until": "2026-11-24"}], "zone": "UTC"}`)
	whole := mustLoad(t, Options{Handlers: map[string]Handler{e.ToolID: Bind(func(context.Context, Call[json.RawMessage, none]) (Result, error) { return Result{}, nil })}}, e).Snapshot()
	p, _ := whole.Prepare(e.ToolID, spec.ModeText, nil)
	env := p.Unavailable(Session{Now: clock(t, "2026-11-25T00:00:00Z")})
	if env == nil || env.Error.Retryable || string(env.Error.Details) != `{"reason":"time"}` {
		t.Errorf("after the last day: %+v", env)
	}
	before := whole.For(Selection{Session: Session{Mode: spec.ModeText, Now: clock(t, "2026-11-22T23:59:59Z")}})
	p, refused := before.Prepare(e.ToolID, spec.ModeText, nil)
	if refused != nil {
		t.Fatalf("%+v", refused.Error)
	}
	if env := p.Unavailable(Session{Now: clock(t, "2026-11-23T00:00:01Z")}); env == nil || env.Error.Type != ErrorUnavailable {
		t.Errorf("a tool that was not offered runs: %+v", env)
	}
}

// TestAvailableIsShared: conversations share a snapshot only if they have and lack the same tools.
func TestAvailableIsShared(t *testing.T) {
	whole := hoursRegistry(t, nil).Snapshot()
	get := func(at, agent string, only ...string) *Snapshot {
		return whole.For(Selection{Session: Session{Mode: spec.ModeText, Agent: agent, Now: clock(t, at)}, Only: only})
	}
	const night, day = "2026-11-24T01:00:00Z", "2026-11-23T10:00:00Z"
	if first, second := get(night, ""), get(night, ""); first != second || first == get(day, "") {
		t.Error("equal tools have different snapshots, or different ones share one")
	}
	without := get(night, "", "always")
	if _, env := without.Prepare("office", spec.ModeText, nil); env == nil || env.Error.Type != ErrorNotFound {
		t.Errorf("an agent without the tool is answered %+v", env)
	}
	if _, env := get(night, "", "always", "office").Prepare("office", spec.ModeText, nil); env != nil {
		t.Errorf("an agent with the tool is answered %+v", env)
	}
	if whole.Available(Session{Agent: "desk"}) == nil || (*Snapshot)(nil).Available(Session{}) != nil {
		t.Error("nil has tools")
	}
}

package execute

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"
	"unicode/utf8"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// TestActionKey: which calls are the same side effect.
func TestActionKey(t *testing.T) {
	f := newFixture(t, Options{})
	name := func(session, user, id, tool, raw string) string {
		return actionKey(f.job(id, tool, raw), registry.Session{ID: session, UserID: user})
	}
	for about, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"a business key, in any session and call": {name("s1", "ada", "c1", "book", `{"name":"x","time":"9"}`), name("s2", "ada", "c2", "book", `{"time":"9","name":"x"}`), true},
		"another user":                       {name("s1", "ada", "c1", "book", `{"name":"x"}`), name("s1", "bob", "c1", "book", `{"name":"x"}`), false},
		"another tool":                       {name("s1", "ada", "c1", "book", `{"name":"x"}`), name("s1", "ada", "c1", "move", `{"name":"x"}`), false},
		"other arguments":                    {name("s1", "ada", "c1", "book", `{"name":"x"}`), name("s1", "ada", "c1", "book", `{"name":"y"}`), false},
		"a moved space":                      {name("s1", "ada", "c1", "book", `{"name":"a b","time":"c"}`), name("s1", "ada", "c1", "book", `{"name":"a","time":"b c"}`), false},
		"a moved quote":                      {name("s1", "ada", "c1", "book", `{"name":"a\" \"b","time":"c"}`), name("s1", "ada", "c1", "book", `{"name":"a","time":"b\" \"c"}`), false},
		"no business key: the same call":     {name("s1", "ada", "c1", "wipe", `{}`), name("s1", "bob", "c1", "wipe", `{}`), true},
		"no business key: another call":      {name("s1", "ada", "c1", "wipe", `{}`), name("s1", "ada", "c2", "wipe", `{}`), false},
		"no business key: other sessions":    {name("s1", "ada", "c1", "wipe", `{}`), name("s2", "ada", "c1", "wipe", `{}`), false},
		"a user's name that contains a tool": {name("s1", `ada","book`, "c1", "book", `{}`), name("s1", "ada", "c1", "book", `{}`), false},
	} {
		if (tc.a == tc.b) != tc.same {
			t.Errorf("%s: same=%t for %s and %s", about, tc.a == tc.b, tc.a, tc.b)
		}
	}
}

// TestHandlersGetTheActionKey: a tool that writes gets a key that is the same for the same side effect, and valid in
// a request header; a tool that reads gets none.
func TestHandlersGetTheActionKey(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, f *fixture) {
		var got string
		f.do = func(_ context.Context, c call) (registry.Result, error) {
			got = c.IdempotencyKey
			return registry.Result{}, registry.Errorf(registry.ErrorPermanent, "No.") // so that it may run again
		}
		fit := regexp.MustCompile(`^vg-[0-9a-f]{32}$`)
		seen := map[string]string{}
		for _, tc := range []struct{ session, call, tool, name, action string }{
			{"s1", "c1", "book", "ada", "one"}, {"s2", "c9", "book", "ada", "one"}, {"s1", "c2", "book", "bob", "two"},
			{"s1", "c3", "wipe", "ada", "three"}, {"s1", "c4", "wipe", "ada", "four"},
		} {
			f.run(f.talk(tc.session, "ada"), f.job(tc.call, tc.tool, `{"name":"`+tc.name+`"}`))
			if before, has := seen[tc.action]; !fit.MatchString(got) || has && before != got {
				t.Errorf("action %s got %q, before %q", tc.action, got, before)
			}
			seen[tc.action] = got
		}
		distinct := map[string]bool{}
		for _, key := range seen {
			distinct[key] = true
		}
		if len(distinct) != 4 {
			t.Errorf("four actions have the keys %v", seen)
		}
		if f.run(f.talk("s1", "ada"), f.job("c9", "look", `{}`)); got != "" {
			t.Errorf("a reading tool got %q", got)
		}
	})
}

// FuzzActionKey: two calls have the same key only if they are the same side effect.
func FuzzActionKey(f *testing.F) {
	f.Add("s1", "ada", "c1", `"x" "9"`, "s2", "ada", "c2", `"x" "9"`)
	f.Add("s1", `a","book","b`, "c1", "k", "s1", "a", "c1", `b","book","k`)
	f.Add("deed", "ada", "book", "", "call", "deed", "ada", "book")
	f.Add("s1", "", "c1", "", "s1", "", "c1", "\u2028<&>")
	fix := newFixture(f, Options{})
	j := fix.job("c", "book", `{}`)
	f.Fuzz(func(t *testing.T, session1, user1, call1, key1, session2, user2, call2, key2 string) {
		name := func(session, user, call, key string) string {
			j := j
			j.Keys = calls.Keys{Idempotency: call, Business: key}
			return actionKey(j, registry.Session{ID: session, UserID: user})
		}
		for _, s := range []string{session1, user1, call1, key1, session2, user2, call2, key2} {
			if !utf8.ValidString(s) {
				t.Skip("all of these come from JSON, which is valid UTF-8")
			}
		}
		a, b := name(session1, user1, call1, key1), name(session2, user2, call2, key2)
		same := key1 == key2 && (key1 != "" && user1 == user2 || key1 == "" && session1 == session2 && call1 == call2)
		if (a == b) != same {
			t.Errorf("same=%t for %s and %s", a == b, a, b)
		}
		if !json.Valid([]byte(a)) {
			t.Errorf("%s is not JSON", a)
		}
	})
}

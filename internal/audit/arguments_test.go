package audit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	long := `{"text":"` + strings.Repeat("x", 64<<10) + `"}`
	many := `{"list":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 20_000), ",") + `]}`
	for _, tt := range []struct {
		name string
		a    Arguments
		args string
		want string
	}{
		{"zero", "", `{"a":1}`, ``},
		{"none", ArgumentsNone, `{"a":1}`, ``},
		{"not one of ours", "all", `{"a":1}`, ``},
		{"nothing", ArgumentsFull, ``, ``},
		{"full", ArgumentsFull, `{"a":"b"}`, `{"a":"b"}`},
		{"full, too long", ArgumentsFull, long, `"<arguments left out, 65547 bytes are more than 16384>"`},
		{"full, broken", ArgumentsFull, `{"a":`, `"<arguments left out, 5 bytes are not JSON>"`},
		{"redacted", ArgumentsRedacted, `{"on":true,"query":"grün","top_k":3.5e400,"none":null,"in":{"a":""}}`,
			`{"in":{"a":"<string, 0 characters>"},"none":null,"on":"<boolean>","query":"<string, 4 characters>","top_k":"<number>"}`},
		{"one character", ArgumentsRedacted, `"x"`, `"<string, 1 character>"`},
		{"a long string", ArgumentsRedacted, long, `{"text":"<string, 65536 characters>"}`},
		{"a long list", ArgumentsRedacted, many, `{"list":[` + strings.Repeat(`"<string, 1 character>",`, 8) + `"<19992 more>"]}`},
		{"deep", ArgumentsRedacted, strings.Repeat(`[`, 7) + `[1,2]` + strings.Repeat(`]`, 7), `[[[[[["<list, 1 item>"]]]]]]`},
		{"deep object", ArgumentsRedacted, `[[[[[[{"a":1,"b":2}]]]]]]`, `[[[[[["<object, 2 names>"]]]]]]`},
		{"names of the model's own", ArgumentsRedacted, `{"ada@example.com":1,"a b":{"":2}}`,
			`{"<name 1, 3 characters>":{"<name 1, 0 characters>":"<number>"},"<name 2, 15 characters>":"<number>"}`},
		{"broken", ArgumentsRedacted, `{"a":"secret`, `"<arguments, 12 bytes that are not JSON>"`},
		{"more behind it", ArgumentsRedacted, `{} "secret"`, `"<arguments, 11 bytes that are not JSON>"`},
		{"huge", ArgumentsRedacted, `"` + strings.Repeat("x", 1<<20) + `"`, `"<arguments, 1048578 bytes>"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.a.render(json.RawMessage(tt.args))); got != tt.want {
				t.Errorf("%.300s, want %.300s", got, tt.want)
			}
		})
	}
}

// TestRedactedIsShort: many small lists do not count as many values.
func TestRedactedIsShort(t *testing.T) {
	list := strings.TrimSuffix(strings.Repeat(`"x",`, 8), ",")
	object := `{"a":[` + list + `]`
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h", "i", "j", "k"} {
		object += fmt.Sprintf(`,%q:[%s]`, name, list)
	}
	object += `}`
	args := `[` + strings.TrimSuffix(strings.Repeat(object+`,`, 8), ",") + `]`
	lists := `[` + list + `]`
	for range 3 {
		lists = `[` + strings.TrimSuffix(strings.Repeat(lists+`,`, 8), ",") + `]`
	}
	if out := string(withoutValues(json.RawMessage(lists))); strings.Count(out, "<string") > maxNodes || len(out) > 4<<10 || !json.Valid([]byte(out)) {
		t.Errorf("lists of lists: %d bytes: %s", len(out), out)
	}
	out := string(withoutValues(json.RawMessage(args)))
	if n := strings.Count(out, "<string"); n == 0 || n > maxNodes || !json.Valid([]byte(out)) || !strings.Contains(out, `"…":"<`) || !strings.Contains(out, " more>") {
		t.Errorf("%d values: %s", n, out)
	}
}

// TestRedactedHoldsNoValue: the redacted form of any arguments is short and has no string, number or user-chosen name of
// them.
func TestRedactedHoldsNoValue(t *testing.T) {
	for seed := range uint64(2000) {
		g := &generator{rand: rand.New(rand.NewPCG(seed, 1))}
		args, err := json.Marshal(g.value(0))
		if err != nil {
			t.Fatal(err)
		}
		out := string(ArgumentsRedacted.render(args))
		if !json.Valid([]byte(out)) || len(out) > 8<<10 {
			t.Fatalf("seed %d: %d bytes, or no JSON: %.200s", seed, len(out), out)
		}
		for _, secret := range g.secrets {
			if strings.Contains(out, secret) {
				t.Fatalf("seed %d: %q of %.300s is in %s", seed, secret, args, out)
			}
		}
	}
}

// generator makes values, and records those that must not be found.
type generator struct {
	rand    *rand.Rand
	secrets []string
	values  int // made so far
}

// secret is a text that is not part of any kind or fixed name.
func (g *generator) secret() string {
	s := fmt.Sprintf("§%08x", g.rand.Uint32())
	g.secrets = append(g.secrets, s)
	return strings.Repeat("word ", g.rand.IntN(3)) + s + strings.Repeat("\"<\\", g.rand.IntN(3))
}

func (g *generator) value(depth int) any {
	kinds := 6
	if g.values++; depth > 8 || g.values > 200 {
		kinds = 4
	}
	switch g.rand.IntN(kinds) {
	case 0:
		return g.secret()
	case 1:
		n := 1_000_000_000 + g.rand.IntN(1_000_000_000)
		g.secrets = append(g.secrets, fmt.Sprint(n))
		return n
	case 2:
		return g.rand.IntN(2) == 0
	case 3:
		return nil
	case 4:
		list := make([]any, g.rand.IntN(20))
		for i := range list {
			list[i] = g.value(depth + 1)
		}
		return list
	default:
		object := map[string]any{}
		for i := range g.rand.IntN(20) {
			name := fmt.Sprintf("name_%d", i)
			if g.rand.IntN(4) == 0 {
				name = g.secret()
			}
			object[name] = g.value(depth + 1)
		}
		return object
	}
}

package transport

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFailuresAreDocumented: docs/providers.md has the same table of failures as the code.
func TestFailuresAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	var want []string
	for _, k := range Kinds() {
		f := k.Failure()
		if f.Code == "" {
			continue
		}
		alert := "-"
		if f.Alert != AlertNone {
			alert = "`" + string(f.Alert) + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | `%s` | %s | %s | %s |", f.Name, yes[f.Retry], yes[f.Elsewhere], f.Code, yes[f.Later], strings.ToLower(f.Level.String()), alert))
	}
	got := slices.DeleteFunc(strings.Split(string(page), "\n"), func(line string) bool {
		return !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(line, w[:strings.Index(w[2:], "|")+2]) })
	})
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("docs/providers.md has\n%s\nand the code has\n%s", g, w)
	}
}

// TestFailureRows: each row that a client can see has a code and a message, and a retried failure is never final for the
// user.
func TestFailureRows(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		f := k.Failure()
		if seen[f.Name] || (f.Code == "") != (f.Words == "") || f.Retry && !f.Later || k.Retryable() != f.Retry || k.String() != f.Name {
			t.Errorf("the row of %s: %+v", k, f)
		}
		seen[f.Name] = true
	}
	if f := Kind(200).Failure(); f.Name != KindRefused.String() || Kind(200).Retryable() {
		t.Errorf("an unknown kind has the row %+v", f)
	}
	for code, k := range codes {
		if code != strings.ToLower(code) || k.Failure().Code == "" {
			t.Errorf("the code %q has the kind %s", code, k)
		}
	}
}

func TestKindOfCode(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  Kind
	}{
		{[]string{"rate_limit_exceeded"}, KindRateLimit}, {[]string{"RESOURCE_EXHAUSTED"}, KindRateLimit}, {[]string{"", "server_error"}, KindServer},
		{[]string{"insufficient_quota", "server_error"}, KindQuota}, {[]string{"", ""}, 0}, {[]string{"out of cheese"}, 0}, {[]string{"ResponsibleAIPolicyViolation"}, KindFiltered},
	} {
		if got := KindOfCode(tt.names...); got != tt.want {
			t.Errorf("%q is %s, want %s", tt.names, got, tt.want)
		}
	}
}

func TestWaitIn(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"Rate limit reached for gpt-realtime. Please try again in 1.2s. Visit https://x.": 1200 * time.Millisecond,
		"Please try again in 20ms.":                           20 * time.Millisecond,
		"Please try again in 6m0s.":                           6 * time.Minute,
		"Please retry in 23.5s.":                              23500 * time.Millisecond,
		"Please retry after 20 seconds.":                      20 * time.Second,
		"please try again in 2 minutes":                       2 * time.Minute,
		"try again in 99999999999999999999999h":               time.Hour,
		"try again in 400h":                                   time.Hour,
		"Try again later.":                                    0,
		"You exceeded your current quota. 20s is not a wait.": 0,
		"": 0,
	} {
		if got := WaitIn(text); got != want {
			t.Errorf("%q asks for %v, want %v", text, got, want)
		}
	}
}

func FuzzWaitIn(f *testing.F) {
	f.Add("Please try again in 1.2s")
	f.Add("retry in 1h99m.5s")
	f.Fuzz(func(t *testing.T, text string) {
		if d := WaitIn(text); d < 0 || d > longestHint {
			t.Errorf("%q asks for %v", text, d)
		}
	})
}

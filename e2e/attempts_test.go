package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/protocol"
)

// closesEarly closes the wire's connections between two numbers right after their setup.
func closesEarly(provider string, from, to int) string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("{at: setup, api: %s, connection: %d, do: close, code: 1011}", map[string]string{"gemini": "live", "openai": "realtime"}[provider], n))
	}
	return strings.Join(all, ", ")
}

// TestEarlyCloses: if connections close after their setup, the session continues with the one that stays, or with the
// other provider.
func TestEarlyCloses(t *testing.T) {
	t.Parallel()
	for i, provider := range providers {
		for _, fallback := range []string{"", providers[1-i]} {
			most := 5
			if fallback != "" {
				most = 40
			}
			overLinks(t, []string{provider}, setting{playback: 1, fallback: fallback, faults: "faults: [" + closesEarly(provider, 1, most) + "]"}, func(t *testing.T, _ string, st *stack, _ *stage) {
				c := st.start(t, 16000)
				c.listens(15 * time.Second)
				if r := c.asks("My colour is blue."); r.words != "Noted." || r.status != "completed" || r.errors != "" {
					t.Errorf("%+v", r)
				}
				if given, _ := st.links(t); len(given) > most {
					t.Errorf("%d connections were given up", len(given))
				}
			})
		}
	}
}

// TestNoticeOnEveryConnection: if a provider announces the end of every connection a few seconds ahead, the gateway
// opens few connections, and the session ends with a visible error or continues with the other provider.
func TestNoticeOnEveryConnection(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"0s", "1s", "5s"} {
		for _, fallback := range []string{"", "openai"} {
			overLinks(t, []string{"gemini"}, setting{playback: 1, fallback: fallback, faults: "faults: [{at: setup, api: live, do: goaway, for: " + left + "}]"}, func(t *testing.T, _ string, st *stack, _ *stage) {
				c := st.start(t, 16000)
				if fallback != "" {
					c.listens(30 * time.Second)
					if r := c.asks("My colour is blue."); r.words != "Noted." || r.status != "completed" {
						t.Errorf("%s left: %+v", left, r)
					}
					return
				}
				began := time.Now()
				code, errs := c.ended()
				if code != protocol.CloseProviderLost || len(errs) != 1 || errs[0].Code != "provider_lost" {
					t.Errorf("%s left: closed %d, errors %+v", left, code, errs)
				}
				given, _ := st.links(t)
				if took := time.Since(began); len(given) > 16 || took > time.Minute {
					t.Errorf("%s left: %d connections in %v", left, len(given), took)
				}
			})
		}
	}
}

// TestQuotaInAnAnswer: if a failed answer reports exhausted credit, the other provider answers; without one the user
// gets an error.
func TestQuotaInAnAnswer(t *testing.T) {
	t.Parallel()
	for _, fallback := range []string{"", "gemini"} {
		overLinks(t, []string{"openai"}, setting{playback: 1, fallback: fallback, faults: "faults: [{at: turn, api: realtime, do: quota}]"}, func(t *testing.T, _ string, st *stack, _ *stage) {
			c := st.start(t, 16000)
			r := c.asks("My colour is blue.")
			switch {
			case fallback != "" && (r.words != "Noted." || r.status != "completed" || r.errors != ""):
				t.Errorf("%+v", r)
			case fallback == "" && (r.status != "failed" || !strings.Contains(r.errors, "provider_quota")):
				t.Errorf("%+v", r)
			}
			if !strings.Contains(st.log.String(), "the model's answer failed") {
				t.Error("the log does not say that the answer has failed")
			}
		})
	}
}

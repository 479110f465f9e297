package cluster

import (
	"fmt"
	"strings"
	"testing"

	"voicegw/store"
)

// TestCheck: at its start a gateway notices that its address is wrong or belongs to another program, and that another
// gateway has another secret or is unreachable. A single gateway has no problems.
func TestCheck(t *testing.T) {
	with := func(secret string) (*Peers, string) {
		p, err := New(Options{Secret: []byte(strings.Repeat(secret, MinSecret))})
		if err != nil {
			t.Fatal(err)
		}
		return p, serve(t, p.Handler())
	}
	p, own := with("s")
	_, same := with("s")
	_, differs := with("x")
	const nowhere = "http://127.0.0.1:1"
	for name, tc := range map[string]struct {
		own    string
		others []store.Node
		want   string
	}{
		"alone":                      {own: own},
		"all is well":                {own: own, others: []store.Node{{ID: "b", URL: same}, {ID: "c"}}},
		"its address leads nowhere":  {own: nowhere, want: "cluster.url"},
		"its address is another's":   {own: differs, want: "cluster.secret"},
		"another one has a secret":   {own: own, others: []store.Node{{ID: "b", URL: differs}}, want: "the same cluster.secret"},
		"another one is not reached": {own: own, others: []store.Node{{ID: "b", URL: nowhere}}, want: "cannot be reached"},
		"the other one is itself":    {own: own, others: []store.Node{{ID: "a", URL: nowhere}}},
	} {
		wrong := p.Check(t.Context(), store.Node{ID: "a", URL: tc.own}, tc.others)
		if got := fmt.Sprint(wrong); tc.want == "" && len(wrong) != 0 || tc.want != "" && (len(wrong) != 1 || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %s, want %q", name, got, tc.want)
		}
	}
}

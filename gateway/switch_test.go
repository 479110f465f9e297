package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"voicegw/session"
	"voicegw/store"
)

// TestSwitchingAnAgent: the agent of a session of another gateway is switched through that gateway; a failure has a
// reason.
func TestSwitchingAnAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		id, url, body string
		err           error // of the peer
		status        int
		asked         int
		says          string
	}{
		"it is unknown":              {id: "voice-unknown", status: 404, says: "session_unknown"},
		"its gateway answers":        {url: "https://b.example", status: 202, asked: 1},
		"it has ended there":         {url: "https://b.example", err: store.ErrUnknown, status: 404, asked: 1, says: "session_unknown"},
		"the agent cannot":           {url: "https://b.example", err: fmt.Errorf("%w: it is asleep", session.ErrAgent), status: 409, asked: 1, says: "it is asleep"},
		"its gateway has no address": {status: 409, says: "session_elsewhere"},
		"no agent is named":          {body: `{"reason":"x"}`, status: 400, says: "agent is missing"},
		"a field is unknown":         {body: `{"agnet":"x"}`, status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := elsewhere(t)
			p := &peers{err: tc.err}
			s := deskServer(t, &desk{}, func(o *Options) {
				o.Directory, o.Nodes, o.Peers = d, &nodes{all: []store.Node{{ID: r.Node, URL: tc.url}}}, p
			})
			if tc.id == "" {
				tc.id = r.ID
			}
			if tc.body == "" {
				tc.body = `{"agent":"default","reason":"a bill"}`
			}
			w := operate(s, http.MethodPost, "/v1/sessions/"+tc.id+"/agent", tc.body, nil)
			if w.Code != tc.status || len(p.asked) != tc.asked || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%d %s, asked %v", w.Code, w.Body, p.asked)
			}
			if tc.status == http.StatusAccepted && p.asked[0] != "voice-there at https://b.example to default for a bill" {
				t.Errorf("asked was %q", p.asked[0])
			}
		})
	}
}

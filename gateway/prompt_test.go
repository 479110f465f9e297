package gateway

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"voicegw/session"
	"voicegw/store"
)

// TestThePromptOfAnotherGateway: the prompt of a session of another gateway is read from that gateway.
func TestThePromptOfAnotherGateway(t *testing.T) {
	for name, tc := range map[string]struct {
		id, url string
		err     error // of the peer
		status  int
		asked   int
		says    string
	}{
		"it is unknown":              {id: "voice-unknown", status: 404, says: "session_unknown"},
		"its gateway answers":        {url: "https://b.example", status: 200, asked: 1, says: `"session_id":"voice-there","agent":"billing"`},
		"it has ended there":         {url: "https://b.example", err: store.ErrUnknown, status: 404, asked: 1, says: "session_unknown"},
		"it has no model":            {url: "https://b.example", err: session.ErrNoModel, status: 409, asked: 1, says: "session_connecting"},
		"its gateway fails":          {url: "https://b.example", err: errors.New("cannot be reached"), status: 503, asked: 1},
		"its gateway has no address": {status: 409, says: "session_elsewhere"},
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
			w := operate(s, http.MethodGet, "/v1/sessions/"+tc.id+"/prompt", "", nil)
			if w.Code != tc.status || len(p.asked) != tc.asked || !strings.Contains(strings.ReplaceAll(w.Body.String(), " ", ""), strings.ReplaceAll(tc.says, " ", "")) {
				t.Errorf("%d %s, asked %v", w.Code, w.Body, p.asked)
			}
		})
	}
}

// TestPromptOfAnotherUser: a caller that may only see its own calls does not get another user's prompt, and the other
// gateway is not asked.
func TestPromptOfAnotherUser(t *testing.T) {
	callers := everyCaller(t)
	d, r := elsewhere(t)
	for who, status := range map[string]int{"ada": http.StatusOK, "eve": http.StatusNotFound} {
		p := &peers{}
		s := deskServer(t, &desk{}, func(o *Options) {
			o.Auth, o.Directory, o.Nodes, o.Peers = callers.current, d, &nodes{all: []store.Node{{ID: r.Node, URL: "https://b.example"}}}, p
		})
		w := operate(s, http.MethodGet, "/v1/sessions/"+r.ID+"/prompt", "", bearer(tokenFor(who, "inspect", nil)))
		if w.Code != status || len(p.asked) > 0 != (status == http.StatusOK) {
			t.Errorf("%s: %d %s, asked %v", who, w.Code, w.Body, p.asked)
		}
	}
}

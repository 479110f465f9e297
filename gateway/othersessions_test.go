package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
)

// nodes are the gateways of a test.
type nodes struct {
	all  []store.Node
	gone bool
	err  error
}

func (n *nodes) List(context.Context) ([]store.Node, error)      { return n.all, n.err }
func (n *nodes) Gone(_ context.Context, id string) (bool, error) { return n.gone, n.err }

// noSessions is an empty directory.
type noSessions struct{}

func (noSessions) List(context.Context) ([]store.SessionRecord, error) { return nil, nil }

func (noSessions) Find(context.Context, string) (store.SessionRecord, error) {
	return store.SessionRecord{}, store.ErrUnknown
}

// peers records the sessions that it was asked to end.
type peers struct {
	asked []string
	err   error
}

func (p *peers) EndSession(_ context.Context, node store.Node, session string) error {
	p.asked = append(p.asked, session+" at "+node.URL)
	return p.err
}

func (p *peers) SwitchAgent(_ context.Context, node store.Node, id, agent, reason string) error {
	p.asked = append(p.asked, id+" at "+node.URL+" to "+agent+" for "+reason)
	return p.err
}

func (p *peers) Prompt(_ context.Context, node store.Node, id string) (session.Prompt, error) {
	p.asked = append(p.asked, id+" at "+node.URL)
	return session.Prompt{Agent: "billing", Instructions: "You are billing.", Tools: []transport.Tool{{Name: "kb_search"}}}, p.err
}

func (p *peers) Session(_ context.Context, node store.Node, id string) (session.Running, error) {
	p.asked = append(p.asked, id+" at "+node.URL)
	return session.Running{ID: id, User: "ada", Turn: 3, Phase: "active"}, p.err
}

// elsewhere is a store with a session of another gateway.
func elsewhere(t *testing.T) (d *store.Directory, r store.SessionRecord) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Nodes.Join(t.Context(), store.Node{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Leave()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	o, err := s.Directory.Enter(t.Context(), store.SessionRecord{
		ID: "voice-there", State: store.SessionDetached, User: "ada", Agent: "default", Provider: "fake", Conversation: "c-7",
		StartedAt: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), TokenHashes: []string{"secret-hash"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Directory, o.Record()
}

// TestSessionsOfAllGateways: the list has the sessions of other gateways and the gateways, and says when the store could
// not be read; it shows no token's hash.
func TestSessionsOfAllGateways(t *testing.T) {
	d, r := elsewhere(t)
	n := &nodes{all: []store.Node{{ID: r.Node, URL: "https://b.example", Version: "v1", Sessions: 1}}}
	s := deskServer(t, &desk{}, func(o *Options) { o.Directory, o.Nodes = d, n })
	list := func() (got struct {
		Sessions   []map[string]any
		Nodes      []map[string]any
		Incomplete bool
	}) {
		w := operate(s, http.MethodGet, "/v1/sessions", "", nil)
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return got
	}
	got := list()
	if len(got.Sessions) != 1 || len(got.Nodes) != 1 || got.Incomplete {
		t.Fatalf("listed are %+v", got)
	}
	one := got.Sessions[0]
	if one["id"] != "voice-there" || one["node"] != r.Node || one["away"] != true || one["node_gone"] != nil || one["conversation_id"] != "c-7" || len(one) != 9 {
		t.Errorf("the session is %+v", one)
	}
	if node := got.Nodes[0]; node["id"] != r.Node || node["version"] != "v1" || node["sessions"] != 1.0 {
		t.Errorf("the gateway is %+v", node)
	}
	n.all = nil
	if got = list(); got.Sessions[0]["node_gone"] != true {
		t.Errorf("a session of a dead gateway: %+v", got.Sessions[0])
	}
	n.err = errors.New("away")
	if got = list(); !got.Incomplete || len(got.Sessions) != 0 {
		t.Errorf("without the store: %+v", got)
	}
}

// TestEndingASession: a session of another gateway ends through that gateway, one of a dead gateway by a takeover;
// otherwise the end fails.
func TestEndingASession(t *testing.T) {
	for name, tc := range map[string]struct {
		id     string
		url    string
		gone   bool
		err    error // of the peer
		status int
		asked  int
		over   bool
	}{
		"it is unknown":              {id: "voice-unknown", status: 404},
		"its gateway is asked":       {url: "https://b.example", status: 204, asked: 1},
		"it has ended there":         {url: "https://b.example", err: store.ErrUnknown, status: 404, asked: 1},
		"its gateway fails":          {url: "https://b.example", err: store.ErrUnavailable, status: 503, asked: 1},
		"its gateway has no address": {status: 409},
		"its gateway is dead":        {gone: true, status: 204, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := elsewhere(t)
			p := &peers{err: tc.err}
			s := deskServer(t, &desk{}, func(o *Options) {
				o.Directory, o.Nodes, o.Peers = d, &nodes{all: []store.Node{{ID: r.Node, URL: tc.url}}, gone: tc.gone}, p
				o.EndLost = func(ctx context.Context, found store.SessionRecord) error {
					owned, err := d.Take(ctx, found)
					if err != nil {
						return err
					}
					return owned.End(ctx)
				}
			})
			if tc.id == "" {
				tc.id = r.ID
			}
			if w := operate(s, http.MethodDelete, "/v1/sessions/"+tc.id, "", nil); w.Code != tc.status || len(p.asked) != tc.asked {
				t.Errorf("%d %s, asked %v", w.Code, w.Body, p.asked)
			}
			found, err := d.Find(t.Context(), r.ID)
			if err != nil || (found.State == store.SessionOver) != tc.over {
				t.Errorf("it is %s, %v", found.State, err)
			}
			if tc.over {
				if w := operate(s, http.MethodDelete, "/v1/sessions/"+tc.id, "", nil); w.Code != http.StatusNotFound {
					t.Errorf("once more: %d", w.Code)
				}
			}
		})
	}
	s := deskServer(t, &desk{}, nil)
	if w := operate(s, http.MethodDelete, "/v1/sessions/voice-unknown", "", nil); w.Code != http.StatusNotFound {
		t.Errorf("on the only gateway: %d", w.Code)
	}
	if w := operate(s, http.MethodDelete, "/v1/sessions/voice-unknown", "", func(r *http.Request) { r.Header.Del("Authorization") }); w.Code != http.StatusUnauthorized {
		t.Errorf("without the key: %d", w.Code)
	}
}

// TestShowingASession: each gateway shows a session of any other, from that gateway or, if it is unreachable, from the
// store; also one that has just ended.
func TestShowingASession(t *testing.T) {
	for name, tc := range map[string]struct {
		id, url string
		gone    bool
		over    bool
		err     error // of the peer
		status  int
		turn    any
	}{
		"its gateway is asked":       {url: "https://b.example", status: 200, turn: 3.0},
		"its gateway fails":          {url: "https://b.example", err: store.ErrUnavailable, status: 200},
		"its gateway has no address": {status: 200},
		"its gateway is dead":        {gone: true, status: 200},
		"it has ended":               {over: true, status: 200},
		"it is unknown":              {id: "voice-unknown", status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := elsewhere(t)
			s := deskServer(t, &desk{}, func(o *Options) {
				o.Directory, o.Nodes, o.Peers = d, &nodes{all: []store.Node{{ID: r.Node, URL: tc.url}}, gone: tc.gone}, &peers{err: tc.err}
			})
			if tc.over {
				owned, err := d.Take(t.Context(), r)
				if err == nil {
					err = owned.End(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			w := operate(s, http.MethodGet, "/v1/sessions/"+cmp.Or(tc.id, r.ID), "", nil)
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tc.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if tc.status != http.StatusOK {
				return
			}
			if got["id"] != r.ID || got["user"] != "ada" || got["turn"] != tc.turn || got["node"] == nil || (got["node_gone"] == true) != tc.gone || (got["ended_at"] != nil) != tc.over {
				t.Errorf("it is shown as %v", got)
			}
		})
	}
}

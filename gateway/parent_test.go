package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"voicegw/protocol"

	"voicegw/internal/auth"
)

const aParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestParentOf is the table of callers that may add their requests to a trace.
func TestParentOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		who    auth.Principal
		header []string
		want   string
	}{
		{"an operator", auth.Principal{Kind: auth.KindOperator, Scopes: auth.ScopeAdmin}, []string{aParent}, aParent},
		{"a key that may look inside", auth.Principal{Kind: auth.KindKey, Scopes: auth.ScopeChat | auth.ScopeInspect}, []string{aParent}, aParent},
		{"this machine", auth.Principal{Kind: auth.KindLocal, Scopes: auth.ScopeVoice | auth.ScopeChat}, []string{aParent}, aParent},
		{"a key that may not", auth.Principal{Kind: auth.KindKey, Scopes: auth.ScopeVoice | auth.ScopeChat | auth.ScopeTickets}, []string{aParent}, ""},
		{"a user", auth.Principal{Kind: auth.KindJWT, Scopes: auth.ScopeVoice | auth.ScopeChat}, []string{aParent}, ""},
		{"anybody", auth.Principal{Kind: auth.KindOpen, Scopes: auth.ScopeVoice | auth.ScopeChat}, []string{aParent}, ""},
		{"anonymous", auth.Principal{}, []string{aParent}, ""},
		{"nonsense", auth.Principal{Kind: auth.KindLocal}, []string{"00-xyz"}, ""},
		{"two of them", auth.Principal{Kind: auth.KindLocal}, []string{aParent, aParent}, ""},
		{"nothing", auth.Principal{Kind: auth.KindLocal}, nil, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/chat", nil)
		r.Header[protocol.TraceHeader] = c.header
		if got := parentOf(r.WithContext(auth.With(r.Context(), c.who))).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRequestsBelongToTraces: each endpoint that begins a turn or a session passes on the caller's trace.
func TestRequestsBelongToTraces(t *testing.T) {
	a, d := &fakeAgent{}, &desk{}
	s, _ := chatServer(t, a, func(o *Options) { o.Auth, o.Voice = auth.Operators("0123456789abcdef"), d })
	as := func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		r.Header.Set("Traceparent", aParent)
	}
	send(s, "/v1/chat", `{"message":"Hello","user":"ada"}`, as)
	send(s, completionsPath, `{"model":"default","messages":[{"role":"user","content":"Hello"}]}`, as)
	if w := send(s, sessionsPath, `{"user":"ada"}`, as); w.Code != http.StatusCreated || len(d.under) != 1 || d.under[0].String() != aParent {
		t.Errorf("%d: the session belongs to %v", w.Code, d.under)
	}
	asked := a.requests()
	if len(asked) != 2 || asked[0].Parent.String() != aParent || asked[1].Parent.String() != aParent {
		t.Errorf("the turns are %+v", asked)
	}
}

package gateway

import (
	"net/http"
	"strings"
	"testing"

	"voicegw/session"
	"voicegw/transport"
)

// telling is a transport with a description of its models and voices.
type telling struct{ quiet }

func (telling) Model() string { return "model-1" }

func (telling) Voices(string) []string { return []string{"first", "second"} }

// TestProvidersAreListed: the list has all choices of a client, the default first, and only the name of a provider
// without a description.
func TestProvidersAreListed(t *testing.T) {
	fake := quiet{}
	m, err := session.NewManager(session.Options{
		Transports: map[string]transport.Transport{"b": telling{fake}, "a": fake, "c": fake}, Provider: "b",
		Agent: session.Agent{Name: "anna", Voices: map[string]string{"b": "second"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"alone": {func(*Options) {}, `{"default":"b","agents":["anna"],"providers":[` +
			`{"name":"b","model":"model-1","voices":["first","second"],"voice":"second","simulated":false},` +
			`{"name":"a","model":"","voices":[],"voice":"","simulated":false},{"name":"c","model":"","voices":[],"voice":"","simulated":false}],` +
			`"text_agent":false,"simulator":false}`},
		"with a text agent and a simulator": {func(o *Options) { o.Chat, o.Simulator = &fakeAgent{}, &fakeSimulator{} }, `{"default":"b","agents":["anna"],"providers":[` +
			`{"name":"b","model":"model-1","voices":["first","second"],"voice":"second","simulated":true},` +
			`{"name":"a","model":"","voices":[],"voice":"","simulated":true},{"name":"c","model":"","voices":[],"voice":"","simulated":true}],` +
			`"text_agent":true,"simulator":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Sessions: m}
			tc.change(&opts)
			w := ask(New(opts), "GET", "/v1/providers", from("203.0.113.7:1"))
			if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != tc.want {
				t.Errorf("%d %s\nwant %s", w.Code, got, tc.want)
			}
		})
	}
}

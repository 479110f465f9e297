package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/transport"
)

// TestSessionUpdateEqualsTheLibrarys: the event around the session is built by hand, and equals the library's.
func TestSessionUpdateEqualsTheLibrarys(t *testing.T) {
	for name, setup := range map[string]transport.Setup{
		"nothing": {},
		"everything": {
			Model: "gpt-realtime", Instructions: "Say <b>\"hello\"</b> & \u2028 goodbye.\n", Voice: "marin", Language: "de-AT", SilenceMS: 300,
			Tools: []transport.Tool{{Name: "a", Description: "does <a>", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)}},
		},
		"manual": {ManualActivity: true},
	} {
		got, err := sessionUpdate("update_1", setup, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		session := sessionOf(setup, &Options{})
		for _, t := range setup.Tools {
			session.Tools = append(session.Tools, realtime.RealtimeToolsConfigUnionParam{OfFunction: &realtime.RealtimeFunctionToolParam{
				Type: realtime.RealtimeFunctionToolTypeFunction, Name: param.NewOpt(t.Name), Description: param.NewOpt(t.Description),
				Parameters: t.Parameters,
			}})
		}
		want, err := json.Marshal(realtime.SessionUpdateEventParam{
			EventID: param.NewOpt("update_1"),
			Session: realtime.SessionUpdateEventSessionUnionParam{OfRealtime: session},
		})
		if err != nil {
			t.Fatal(err)
		}
		var library, ours any
		if err := errors.Join(json.Unmarshal(want, &library), json.Unmarshal(got, &ours)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(library, ours); diff != "" {
			t.Errorf("%s (-library +ours):\n%s", name, diff)
		}
	}
}

// BenchmarkSessionUpdate measures encoding the setup, with ten tools of 2 KB each.
func BenchmarkSessionUpdate(b *testing.B) {
	setup := transport.Setup{Model: "gpt-realtime", Instructions: strings.Repeat("Be kind. ", 200)}
	for range 10 {
		setup.Tools = append(setup.Tools, transport.Tool{Name: "a", Parameters: []byte(`{"type":"object","description":"` + strings.Repeat("x", 2000) + `"}`)})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sessionUpdate("update_1", setup, &Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

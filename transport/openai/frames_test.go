package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/realtime"

	"voicegw/transport"
)

// TestSessionUpdateIsTheLibrarys: the library's types read the whole event and write the same one.
func TestSessionUpdateIsTheLibrarys(t *testing.T) {
	for name, setup := range map[string]transport.Setup{
		"nothing": {},
		"everything": {
			Model: "gpt-realtime", Instructions: "Say <b>\"hello\"</b> & \u2028 goodbye.\n", Voice: "marin", Language: "de-AT", SilenceMS: 300,
			Tools: []transport.Tool{{Name: "a", Description: "does <a>", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"string"}}}`)}},
		},
		"manual": {ManualActivity: true},
	} {
		got, err := dialectOf("", "", "").update("update_1", setup, &options{transcriptionModel: DefaultTranscriptionModel})
		if err != nil {
			t.Fatal(err)
		}
		const null = `"turn_detection":null,` // the library cannot read it
		if bytes.Contains(got, []byte(null)) != setup.ManualActivity {
			t.Errorf("%s: %s", name, got)
		}
		got = bytes.Replace(got, []byte(null), nil, 1)
		var event realtime.SessionUpdateEventParam
		if err := json.Unmarshal(got, &event); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(event)
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
		if _, err := dialectOf("", "", "").update("update_1", setup, &options{}); err != nil {
			b.Fatal(err)
		}
	}
}

package gemini

import (
	"slices"
	"testing"
	"voicegw/transport"
)

// TestVoices: each kind of model has its voices, the default one first; an unknown model has none.
func TestVoices(t *testing.T) {
	for _, test := range []struct {
		opts  transport.Provider
		model string
		name  string // the result of Model
		n     int
	}{
		{transport.Provider{}, "", "gemini-3.8-live", 30},
		{transport.Provider{Model: "gemini-3.8-live"}, "", "gemini-3.8-live", 30},
		{transport.Provider{}, "gemini-2.5-flash-native-audio-preview-09-2025", "gemini-3.8-live", 30},
		{transport.Provider{}, "gemini-2.5-flash-live-preview", "gemini-3.8-live", 8},
		{transport.Provider{BaseURL: vertexURL, Model: vertexModel}, "", vertexModel, 30},
		{transport.Provider{Model: "someone-elses"}, "", "someone-elses", 0},
	} {
		test.opts.APIKey = "key"
		tr, err := New(test.opts)
		if err != nil {
			t.Fatal(err)
		}
		got := tr.Voices(test.model)
		if len(got) != test.n || test.n > 0 && got[0] != "Puck" || tr.Model() != test.name {
			t.Errorf("%+v %q: %s has %q, want %d of %s", test.opts, test.model, tr.Model(), got, test.n, test.name)
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(got))); len(distinct) != len(got) {
			t.Errorf("%q: a voice is listed twice", got)
		}
	}
}

package openai

import (
	"slices"
	"testing"

	"github.com/openai/openai-go/v3/realtime"
)

// TestVoices: the voices that the SDK knows, the model's default first; an unknown model
// has none.
func TestVoices(t *testing.T) {
	for _, test := range []struct {
		opts         Options
		model, first string
		name         string // that Model returns
	}{
		{Options{}, "", "marin", DefaultModel},
		{Options{}, "gpt-realtime-2.1-mini-2026-05-01", "marin", DefaultModel},
		{Options{}, "gpt-realtime-2025-08-28", "alloy", DefaultModel},
		{Options{Model: "gpt-realtime-mini"}, "", "alloy", "gpt-realtime-mini"},
		{Options{Model: "whoever"}, "", "", "whoever"},
		{Options{BaseURL: "https://x.openai.azure.com"}, "", "", ""},
	} {
		test.opts.APIKey = "sk-key"
		tr, err := New(test.opts)
		if err != nil {
			t.Fatal(err)
		}
		got := tr.Voices(test.model)
		if tr.Model() != test.name || test.first == "" && got != nil {
			t.Errorf("%+v %q: %s has %q", test.opts, test.model, tr.Model(), got)
			continue
		}
		if test.first == "" {
			continue
		}
		want := []string{
			string(realtime.RealtimeAudioConfigOutputVoiceString2Alloy), string(realtime.RealtimeAudioConfigOutputVoiceString2Ash),
			string(realtime.RealtimeAudioConfigOutputVoiceString2Ballad), string(realtime.RealtimeAudioConfigOutputVoiceString2Coral),
			string(realtime.RealtimeAudioConfigOutputVoiceString2Echo), string(realtime.RealtimeAudioConfigOutputVoiceString2Sage),
			string(realtime.RealtimeAudioConfigOutputVoiceString2Shimmer), string(realtime.RealtimeAudioConfigOutputVoiceString2Verse),
			string(realtime.RealtimeAudioConfigOutputVoiceString2Marin), string(realtime.RealtimeAudioConfigOutputVoiceString2Cedar),
		}
		if got[0] != test.first || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s has %q, want %s first", test.model, got, test.first)
		}
	}
}

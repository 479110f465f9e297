package openai

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"voicegw/transport"

	"github.com/openai/openai-go/v3/realtime"
)

// TestVoices: the voices known to the SDK, the model's default first; an unknown model has none.
func TestVoices(t *testing.T) {
	for _, test := range []struct {
		opts         transport.Provider
		model, first string
		name         string // the result of Model
	}{
		{transport.Provider{}, "", "marin", DefaultModel},
		{transport.Provider{}, "gpt-realtime-2.1-mini-2026-05-01", "marin", DefaultModel},
		{transport.Provider{}, "gpt-realtime-2025-08-28", "alloy", DefaultModel},
		{transport.Provider{Model: "gpt-realtime-mini"}, "", "alloy", "gpt-realtime-mini"},
		{transport.Provider{Model: "whoever"}, "", "", "whoever"},
		{transport.Provider{BaseURL: "https://x.openai.azure.com"}, "", "", ""},
		{transport.Provider{BaseURL: "http://127.0.0.1:1/v1", Settings: map[string]string{"dialect": Local}, Model: "gpt-realtime"}, "", "", "gpt-realtime"},
		{transport.Provider{BaseURL: "https://x.services.ai.azure.com/voice-live"}, "gpt-5.6-terra", "", ""},
		{transport.Provider{BaseURL: "https://x.services.ai.azure.com/voice-live"}, "gpt-realtime-2.1-datazone", "marin", ""},
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

// TestRowsOfServices: xAI and Voice Live have models and voices of their own.
func TestRowsOfServices(t *testing.T) {
	for _, test := range []struct{ base, model, prefix, voice string }{
		{"https://api.x.ai/v1", "", "grok-voice-latest", "eve"}, {"https://api.x.ai/v1", "grok-voice-think-fast-2.0", "grok-voice-think-fast", "eve"},
		{"https://api.x.ai/v1", "grok-voice-3.0", "grok-voice-3.0", "eve"}, {"https://api.x.ai/v1", "grok-5", "grok-voice-latest", ""},
		{"https://x.services.ai.azure.com/voice-live", "gpt-5-mini", "gpt-5", ""}, {"https://x.services.ai.azure.com/voice-live", "azure-realtime", "azure-realtime", ""},
		{"https://x.services.ai.azure.com/voice-live", "gpt-realtime-datazone", "gpt-realtime", "alloy"},
	} {
		tr, err := New(transport.Provider{APIKey: "sk-key", BaseURL: test.base})
		if err != nil {
			t.Fatal(err)
		}
		row := tr.ep.dialect.rowOf(cmp.Or(test.model, tr.opts.Model))
		if row.prefix != test.prefix || !strings.Contains(row.source, "2026-11-30") || row.reasons {
			t.Errorf("%s %s has the row %+v", test.base, test.model, row)
		}
		if got := tr.Voices(test.model); test.voice == "" && got != nil || test.voice != "" && (len(got) == 0 || got[0] != test.voice) {
			t.Errorf("%s %s has the voices %v", test.base, test.model, got)
		}
	}
}

package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/session"
	"voicegw/transport"
)

func TestNewChecks(t *testing.T) {
	text := `checks:
  hold_back: 300ms
  rules:
    a: {kind: words, words: [damn], outcome: replace, say: SAY}
    b: {kind: http, url: "https://checks.example.com"}
    c: {kind: model, question: "Is it rude?"}
    d: {kind: model, question: "Is it rude?", base_url: "http://localhost:11434/v1", model: m}
`
	for say, want := range map[string]string{"Sorry.": "", "Damn.": "the check a says words that the check a refuses"} {
		cfg, _, err := config.Load(config.Source{File: "voicegw.yaml", ReadFile: func(string) ([]byte, error) {
			return []byte(strings.Replace(text, "SAY", say, 1)), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		set, err := newChecks(cfg, nil, nil, slog.New(slog.DiscardHandler))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v", err)
			}
			continue
		}
		if err != nil || set.HoldBack != 300*time.Millisecond || len(set.Counts()) != 4*4 {
			t.Fatal(err, set.Counts())
		}
		models := map[string]transport.Transport{}
		var providers []session.Provider
		for name, lag := range map[string]uint16{"slow": 1000, "quick": 100} {
			models[name] = laggingModel{lag: lag}
			providers = append(providers, session.Provider{Name: name, Model: "m"})
		}
		var log bytes.Buffer
		warnOfLag(slog.New(slog.NewTextHandler(&log, nil)), set, providers, models)
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "provider=slow model=m hold_back_ms=300 lag_ms=1000") {
			t.Errorf("the warnings are %s", got)
		}
	}
}

// laggingModel has slow transcripts.
type laggingModel struct {
	transport.Transport

	lag uint16
}

func (m laggingModel) Capabilities(string) transport.Capabilities {
	return transport.Capabilities{TranscriptLagMS: m.lag}
}

package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
)

// TestSpeaker: by default the simulator speaks exact sentences, an OpenAI provider uses its own API, and bad recordings
// are a problem of their setting.
func TestSpeaker(t *testing.T) {
	cfg := config.Default()
	sim, err := simulatorFor(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil || sim == nil {
		t.Fatal(sim, err)
	}
	defer sim.Close()
	s, err := newSpeaker(cfg, sim)
	if err != nil {
		t.Fatal(err)
	}
	if clip, err := s.Speak(t.Context(), "This call is recorded."); err != nil || clip.Duration() < time.Second {
		t.Errorf("the simulator spoke %s, %v", clip.Duration(), err)
	}
	if s, err := newSpeaker(config.Default(), nil); s != nil || err != nil {
		t.Errorf("without a provider there is %v, %v", s, err)
	}
	cfg = config.Default()
	cfg.Providers["openai"].APIKey = setting.NewSecret("key")
	if s, err := newSpeaker(cfg, nil); s == nil || err != nil {
		t.Errorf("with OpenAI there is %v, %v", s, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.wav"), []byte("no audio"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Exact.Recordings = setting.Path(dir)
	if _, err := newSpeaker(cfg, nil); err == nil || !strings.Contains(err.Error(), "exact.recordings is "+dir) || !strings.Contains(err.Error(), "a.wav") {
		t.Errorf("the error is %v", err)
	}
}

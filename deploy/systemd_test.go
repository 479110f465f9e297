package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheUnit: systemd reads every line of it. systemd-analyze exits with 0 for a key that it does not
// know and only prints it, so the output must be empty.
func TestTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: the unit is not verified")
	}
	unit, err := os.ReadFile("systemd/voicegw.service")
	if err != nil {
		t.Fatal(err)
	}
	verify := func(t *testing.T, text string) string {
		// The program that it starts must be there.
		file := filepath.Join(t.TempDir(), "voicegw.service")
		text = strings.Replace(text, "/usr/local/bin/voicegw", "/bin/true", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		return string(out)
	}
	t.Run("is understood", func(t *testing.T) {
		if out := verify(t, string(unit)); out != "" {
			t.Errorf("%s", out)
		}
	})
	t.Run("a typo is found", func(t *testing.T) {
		if out := verify(t, strings.Replace(string(unit), "WatchdogSec", "WatchdogSecs", 1)); !strings.Contains(out, "WatchdogSecs") {
			t.Errorf("%q does not name the key", out)
		}
	})
	t.Run("is confined", func(t *testing.T) {
		// The exposure that systemd computes, times ten.
		if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", "systemd/voicegw.service").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

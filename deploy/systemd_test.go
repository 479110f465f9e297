package deploy

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheUnit: systemd accepts every line of it. For an unknown key systemd-analyze only prints a warning and exits with
// 0, so the output must be empty.
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
		// The program that it starts must exist.
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
	t.Run("with credentials is understood", func(t *testing.T) {
		dropIn, err := os.ReadFile("systemd/credentials.conf")
		if err != nil {
			t.Fatal(err)
		}
		if out := verify(t, string(unit)+string(dropIn)); out != "" {
			t.Errorf("%s", out)
		}
		typo := strings.Replace(string(dropIn), "LoadCredential=", "LoadCredentials=", 1)
		if out := verify(t, string(unit)+typo); !strings.Contains(out, "LoadCredentials") {
			t.Errorf("%q does not name the key", out)
		}
	})
	t.Run("a typo is found", func(t *testing.T) {
		if out := verify(t, strings.Replace(string(unit), "WatchdogSec", "WatchdogSecs", 1)); !strings.Contains(out, "WatchdogSecs") {
			t.Errorf("%q does not name the key", out)
		}
	})
	t.Run("is confined", func(t *testing.T) {
		// The exposure computed by systemd, times ten.
		if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", "systemd/voicegw.service").CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestTheUnitStarts gives the command and the variables of the unit and of credentials.conf to the program, with the
// credentials in the folder that systemd makes.
func TestTheUnitStarts(t *testing.T) {
	for name, files := range map[string][]string{"alone": {"systemd/voicegw.service"}, "with credentials": {"systemd/voicegw.service", "systemd/credentials.conf"}} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, file := range files {
				part, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				text.Write(part)
			}
			root := t.TempDir()
			credentials := filepath.Join(root, "run/credentials/voicegw.service")
			cert, key := certificate("voice.example.com")
			for _, m := range regexp.MustCompile(`(?m)^LoadCredential=([^:]+):/`).FindAllStringSubmatch(text.String(), -1) {
				secret := map[string]string{"tls.crt": cert, "tls.key": key}[m[1]]
				write(t, filepath.Join(credentials, m[1]), cmp.Or(secret, "a-key-of-a-provider\n"))
			}
			var environ []string
			for _, m := range regexp.MustCompile(`(?m)^Environment=(.+)$`).FindAllStringSubmatch(text.String(), -1) {
				environ = append(environ, strings.ReplaceAll(m[1], "%d", credentials))
			}
			config := filepath.Join(root, "voicegw.yaml")
			example, err := os.ReadFile("../voicegw.example.yaml")
			if err != nil {
				t.Fatal(err)
			}
			write(t, config, string(example))
			start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/voicegw (.+)$`).FindStringSubmatch(text.String())
			if start == nil {
				t.Fatal("the unit starts no voicegw")
			}
			args := strings.Fields(strings.Replace(start[1], "/etc/voicegw/voicegw.yaml", config, 1))
			checkConfig(t, environ, args...)
			for _, v := range environ { // a variable that is not read would cause no error
				name, path, _ := strings.Cut(v, "=")
				if _, file, _ := strings.Cut(path, credentials); file == "" {
					continue
				}
				gone := append(slices.Clone(environ), name+"="+strings.ReplaceAll(path, credentials, credentials+"/gone"))
				if out, err := voicegw(t, gone, append(args, "--check-config")...).CombinedOutput(); err == nil || !strings.Contains(string(out), credentials+"/gone") {
					t.Errorf("%s names a missing file, and the result of the check is: %v\n%s", name, err, out)
				}
			}
		})
	}
}

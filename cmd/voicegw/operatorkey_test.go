package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/auth"
	"voicegw/internal/server"
)

// TestLocalKeyIsForThisMachine: only requests to a name of this machine get the data folder's key.
func TestLocalKeyIsForThisMachine(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = setting.Path(t.TempDir())
	key, err := auth.OwnOperatorKey(string(cfg.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost:8080": true, "http://[::1]": true, "ws://LOCALHOST:1/v1/voice": true,
		"https://voice.example.com": false, "http://192.168.1.2:8080": false, "http://localhost.evil.test": false, "http://127.0.0.1.evil.test": false,
		"http://127.0.0.1@evil.test": false, "http://0.0.0.0:8080": false, "http://evil.localhost": false, "": false, "http://[": false, "127.0.0.1:8080": false,
	} {
		got, err := Process{}.localKey(base, cfg)
		if err != nil || (got != "") != want || want && got != key {
			t.Errorf("%s: %t, %v", base, got != "", err)
		}
	}
	cfg.DataDir = setting.Path(t.TempDir())
	if got, err := (Process{}).localKey("http://localhost", cfg); err != nil || got != "" {
		t.Errorf("a folder without a key: %v", err)
	}
}

// TestTheKeyOfTheFirstStart: a gateway without a configured key creates one, requires it everywhere, and keeps it across
// restarts and out of its log; the commands find it, and voicegw console turns it into a link that opens the console
// once.
func TestTheKeyOfTheFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, "--data-dir", dir)
	key := r.key()
	if got := r.status("/v1/sessions"); got != http.StatusUnauthorized {
		t.Errorf("without the key: %d", got)
	}
	run := func(args ...string) (int, string) {
		var out, err console
		code := Run(t.Context(), Process{Args: append(args, "--url", "http://"+r.addr), Stdin: strings.NewReader(""), Host: server.Host{Stdout: &out, Stderr: &err}})
		return code, out.String() + err.String()
	}
	if code, said := run("blocks", "list", "--data-dir", dir); code != exitOK || !strings.Contains(said, "No blocked users") {
		t.Errorf("blocks list: %d %s", code, said)
	}
	if code, said := run("blocks", "list", "--data-dir", t.TempDir()); code != exitFailure || !strings.Contains(said, "operators.key") {
		t.Errorf("blocks list of another folder: %d %s", code, said)
	}
	code, said := run("console", "--data-dir", dir)
	link, secret, ok := strings.Cut(strings.TrimSpace(said), "/#code=")
	if code != exitOK || !ok || link != "http://"+r.addr || strings.Contains(said, key) {
		t.Fatalf("console: %d %s", code, said)
	}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, answer := r.post(t, "/v1/console/login", `{"code":"`+secret+`"}`); status != want || strings.Contains(string(answer), key) {
			t.Errorf("the link: %d %s", status, answer)
		}
	}
	r.signals <- os.Interrupt
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if log := r.err.String() + r.out.String(); strings.Contains(log, key) || strings.Contains(log, secret) || strings.Contains(log, "#code=") {
		t.Errorf("a secret is in the log:\n%s", log)
	}
	if again := start(t, "--data-dir", dir).key(); again != key {
		t.Error("another start has another key")
	}
}

// TestABrokenKeyStopsTheStart: the error names the file.
func TestABrokenKeyStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, auth.OperatorKeyFile), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err console
	code := Run(t.Context(), Process{Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--log-format", "json"}, Stdin: strings.NewReader(""), Host: server.Host{Stdout: &out, Stderr: &err}})
	if code != exitFailure || !strings.Contains(err.String(), auth.OperatorKeyFile) || !strings.Contains(err.String(), "remove it") {
		t.Errorf("%d %s", code, err.String())
	}
}

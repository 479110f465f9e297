package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"voicegw/config"
)

// TestOwnKey: it is made once, of 256 bits, for its owner alone, and several processes that
// make it at once have the same one.
func TestOwnKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	if _, err := readKey(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := ownKey(dir)
			if err != nil {
				t.Error(err)
			}
			keys[i] = key.Reveal()
		})
	}
	all.Wait()
	for _, key := range keys {
		if key != keys[0] || len(key) != 2*keyBytes {
			t.Fatalf("the keys are %q", keys)
		}
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if other, err := ownKey(t.TempDir()); err != nil || other.Reveal() == keys[0] {
		t.Errorf("another folder's key: %v", err)
	}
}

// TestKeyFilesThatAreRefused: with words, and without the key.
func TestKeyFilesThatAreRefused(t *testing.T) {
	good := strings.Repeat("5ec2e7", 11)[:64]
	write := func(text string, mode os.FileMode) func(string) error {
		return func(name string) error {
			return errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chmod(name, mode))
		}
	}
	for name, tc := range map[string]struct {
		make func(string) error
		word string // of the error; empty for a key that is read
	}{
		"as it is made":      {write(good+"\n", 0o600), ""},
		"for its owner only": {write(good, 0o400), ""},
		"read by a group":    {write(good, 0o640), "0640"},
		"read by everybody":  {write(good, 0o604), "may be read"},
		"written by a group": {write(good, 0o620), "0620"},
		"empty":              {write("", 0o600), "64 digits"},
		"half":               {write(good[:32], 0o600), "64 digits"},
		"too long":           {write(good+"0", 0o600), "64 digits"},
		"two lines":          {write(good+"\n\n", 0o600), "64 digits"},
		"no digits":          {write(strings.Repeat("x", 64), 0o600), "64 digits"},
		"huge":               {write(strings.Repeat(good, 1000), 0o600), "64 digits"},
		"a folder":           {func(name string) error { return os.Mkdir(name, 0o700) }, "no plain file"},
		"a link":             {func(name string) error { return os.Symlink("/etc/passwd", name) }, "no plain file"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("modes are Unix's")
			}
			dir := t.TempDir()
			if err := tc.make(filepath.Join(dir, keyFile)); err != nil {
				t.Fatal(err)
			}
			for _, read := range []func(string) (config.Secret, error){readKey, ownKey} {
				key, err := read(dir)
				if tc.word == "" {
					if err != nil || key.Reveal() != good {
						t.Errorf("%v", err)
					}
					continue
				}
				if !errors.Is(err, errKeyFile) || !strings.Contains(err.Error(), tc.word) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "5ec2e7") || key.IsSet() {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

// TestLocalKeyIsForThisMachine: what the data folder holds is shown to nobody else, whatever
// they are called.
func TestLocalKeyIsForThisMachine(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir = config.Path(t.TempDir())
	key, err := ownKey(string(cfg.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost:8080": true, "http://[::1]": true, "ws://LOCALHOST:1/v1/voice": true,
		"https://voice.example.com": false, "http://192.168.1.2:8080": false, "http://localhost.evil.test": false, "http://127.0.0.1.evil.test": false,
		"http://127.0.0.1@evil.test": false, "http://0.0.0.0:8080": false, "http://evil.localhost": false, "": false, "http://[": false, "127.0.0.1:8080": false,
	} {
		got, err := Process{}.localKey(base, cfg)
		if err != nil || got.IsSet() != want || want && got.Reveal() != key.Reveal() {
			t.Errorf("%s: %t, %v", base, got.IsSet(), err)
		}
	}
	cfg.DataDir = config.Path(t.TempDir())
	if got, err := (Process{}).localKey("http://localhost", cfg); err != nil || got.IsSet() {
		t.Errorf("a folder without a key: %v", err)
	}
}

// TestTheKeyOfTheFirstStart: a gateway that nobody has given a key makes one, asks for it
// everywhere, keeps it over restarts and out of its log; the commands find it by themselves, and
// voicegw console makes of it a link that opens the console once.
func TestTheKeyOfTheFirstStart(t *testing.T) {
	dir := t.TempDir()
	r := start(t, "--data-dir", dir)
	key := r.key()
	if got := r.status("/v1/sessions"); got != http.StatusUnauthorized {
		t.Errorf("without the key: %d", got)
	}
	run := func(args ...string) (int, string) {
		var out, err console
		code := Run(t.Context(), Process{Args: append(args, "--url", "http://"+r.addr), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err})
		return code, out.String() + err.String()
	}
	if code, said := run("blocks", "list", "--data-dir", dir); code != exitOK || !strings.Contains(said, "Nobody is blocked") {
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

// TestABrokenKeyKeepsItFromStarting: with words that say which file.
func TestABrokenKeyKeepsItFromStarting(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, err console
	code := Run(t.Context(), Process{Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--log-format", "json"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err})
	if code != exitFailure || !strings.Contains(err.String(), keyFile) || !strings.Contains(err.String(), "remove it") {
		t.Errorf("%d %s", code, err.String())
	}
}

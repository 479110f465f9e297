package testutil

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"voicegw/internal/logging"
)

// Env is the environment variable with the file in which child processes report secrets and findings. Pass it to
// processes that don't inherit the environment.
const Env = "VOICEGW_TEST_SECRETS"

var run = newWatcher()

// Need lists what a run must have seen, so that it can't pass without any check.
type Need struct {
	Kinds []logging.Kind // the places where a secret was made
	Sinks []Sink         // the places where output was checked
}

// Tests is a *testing.M, for goleak.VerifyTestMain and testscript.Main.
type Tests interface{ Run() int }

// Main wraps a package's tests so that they fail if any of them leaked a secret.
func Main(m Tests, need Need) Tests { return watched{m, need} }

type watched struct {
	tests Tests
	need  Need
}

// Run runs the tests.
func (m watched) Run() int {
	if os.Getenv(Env) != "" {
		Child()
		return m.tests.Run()
	}
	dir, err := os.MkdirTemp("", "voicegw-secrets-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		told.path = filepath.Join(dir, "told")
		err = os.Setenv(Env, told.path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "secretwatch:", err)
		return 1
	}
	logging.Tell(run.made)
	code := m.tests.Run()
	told.hear()
	wrong := run.verdict(m.need, code == 0 && whole())
	for _, line := range wrong {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(wrong) > 0 {
		return 1
	}
	return code
}

// whole reports whether all of the package's tests ran.
func whole() bool {
	for name, value := range map[string]string{"test.run": "", "test.skip": "", "test.list": "", "test.short": "false"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != value {
			return false
		}
	}
	return true
}

func (w *watcher) verdict(need Need, whole bool) []string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var wrong []string
	for f := range w.found {
		wrong = append(wrong, f.String())
	}
	slices.Sort(wrong)
	if !whole {
		return wrong
	}
	for _, kind := range need.Kinds {
		if w.kinds[kind] == 0 {
			wrong = append(wrong, fmt.Sprintf("secretwatch: no secret (%s) was made in this run, so the check is void", kind))
		}
	}
	for _, sink := range need.Sinks {
		if w.read[sink] == 0 {
			wrong = append(wrong, fmt.Sprintf("secretwatch: nothing was written to a sink (%s) in this run, so the check is void", sink))
		}
	}
	return wrong
}

// line is a child process's report: a secret or a finding.
type line struct {
	Kind   logging.Kind `json:"kind,omitempty"`
	Secret string       `json:"secret,omitempty"`
	Found  *finding     `json:"found,omitempty"`
}

// Child makes this process report secrets and findings to its parent, if requested.
func Child() {
	path := os.Getenv(Env)
	if path == "" {
		return
	}
	tell := func(l line) {
		text, _ := json.Marshal(l) // cannot fail: only strings
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(append(text, '\n')) // one write keeps lines of several processes intact
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(fmt.Sprint("secretwatch: cannot report to the parent: ", err))
		}
	}
	logging.Tell(func(kind logging.Kind, secret string) {
		run.made(kind, secret)
		tell(line{Kind: kind, Secret: secret})
	})
	run.mu.Lock()
	defer run.mu.Unlock()
	run.report = func(f finding) { tell(line{Found: &f}) }
}

var told children

type children struct {
	path string // empty if Main didn't run

	mu     sync.Mutex // guards the field below
	offset int64
}

func (c *children) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" {
		return
	}
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	} else if err != nil {
		panic(fmt.Sprint("secretwatch: ", err))
	}
	for text := range bytes.Lines(text[c.offset:]) {
		var l line
		if text[len(text)-1] != '\n' {
			return // incomplete
		}
		c.offset += int64(len(text))
		switch err := json.Unmarshal(text, &l); {
		case err != nil: // from a process killed while writing
		case l.Found != nil:
			run.mu.Lock()
			run.add(*l.Found)
			run.mu.Unlock()
		default:
			run.made(l.Kind, l.Secret)
		}
	}
}

// Made registers a secret made by a test, such as a provider's key.
func Made(kind logging.Kind, secret string) string {
	logging.Made(kind, secret)
	return secret
}

// Forget unregisters a secret that the test itself put into a checked place.
func Forget(secret string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	begin := [shortest]byte([]byte(secret))
	run.secrets[begin] = slices.DeleteFunc(run.secrets[begin], func(k known) bool { return k.secret == secret })
}

// Watch returns a writer that checks everything and passes it to next; a nil next discards it. It may be used
// concurrently if next may be.
func Watch(name Sink, next io.Writer) io.Writer { return &sink{w: run, name: name, next: next} }

// Logger returns a logger that is checked at every level and passes on what next wants; next may be nil.
func Logger(next *slog.Logger) *slog.Logger {
	all := slog.NewTextHandler(Watch(Log, nil), &slog.HandlerOptions{Level: slog.LevelDebug})
	if next == nil {
		return slog.New(all)
	}
	return slog.New(slog.NewMultiHandler(all, next.Handler()))
}

// Check checks a text written to a sink.
func Check(name Sink, text []byte) {
	told.hear()
	run.check(name, "", text)
}

// CheckJSON is Check for the JSON of v.
func CheckJSON(t testing.TB, name Sink, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	Check(name, text)
}

// CheckFolder checks the content and name of every file of a data folder. The file of the operators' key may contain
// that key.
func CheckFolder(t testing.TB, dir string) {
	t.Helper()
	told.hear()
	if err := run.folder(Data, dir); err != nil {
		t.Error("looking for secrets:", err)
	}
}

// Answers checks a server's error answers and redirect targets.
func Answers(next http.RoundTripper) http.RoundTripper { return answers{next} }

type answers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	next := a.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	Check(Errors, []byte(resp.Header.Get("Location")))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, Watch(Errors, nil)), resp.Body}
	return resp, nil
}

// CloseIdleConnections is for http.Client.
func (a answers) CloseIdleConnections() {
	(&http.Client{Transport: a.next}).CloseIdleConnections()
}

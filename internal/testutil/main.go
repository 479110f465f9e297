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

// Env is the variable whose value names the file in which child processes of tests report
// their secrets and findings. Pass it on to a process that does not inherit the environment.
const Env = "VOICEGW_TEST_SECRETS"

// run is the watcher of this process.
var run = newWatcher()

// Need is what a run must have seen, so that it cannot pass without any check.
type Need struct {
	Kinds []logging.Kind // the places where a secret was made
	Sinks []Sink         // the places where something was read
}

// Tests is a *testing.M, for goleak.VerifyTestMain and testscript.Main.
type Tests interface{ Run() int }

// Main wraps the tests of a package so that they fail at their end if one of them has written
// a secret to a place where none is allowed.
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
		defer func() { _ = os.RemoveAll(dir) }() // it is temporary
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

// whole reports whether all tests of the package were run.
func whole() bool {
	for name, value := range map[string]string{"test.run": "", "test.skip": "", "test.list": "", "test.short": "false"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != value {
			return false
		}
	}
	return true
}

// verdict says what is wrong with a run.
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
			wrong = append(wrong, fmt.Sprintf("secretwatch: no secret (%s) was made in this run, so nothing was looked for", kind))
		}
	}
	for _, sink := range need.Sinks {
		if w.read[sink] == 0 {
			wrong = append(wrong, fmt.Sprintf("secretwatch: nothing was written to a sink (%s) in this run, so nothing was looked at", sink))
		}
	}
	return wrong
}

// line is a report of a child process: a secret, or a finding.
type line struct {
	Kind   logging.Kind `json:"kind,omitempty"`
	Secret string       `json:"secret,omitempty"`
	Found  *finding     `json:"found,omitempty"`
}

// Child makes this process report its secrets and findings to its parent, if the parent has
// asked for that.
func Child() {
	path := os.Getenv(Env)
	if path == "" {
		return
	}
	tell := func(l line) {
		text, _ := json.Marshal(l) // it holds only strings: it cannot fail
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(append(text, '\n')) // one write, so that the lines of several processes stay intact
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(fmt.Sprint("secretwatch: the parent could not be told: ", err))
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

// told collects the reports of child processes.
var told children

type children struct {
	path string // empty if Main has not run

	mu     sync.Mutex // guards the field below
	offset int64
}

// hear reads the new reports of child processes.
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
			return // it is being written
		}
		c.offset += int64(len(text))
		switch err := json.Unmarshal(text, &l); {
		case err != nil: // from a process that was killed while it wrote
		case l.Found != nil:
			run.mu.Lock()
			run.add(*l.Found)
			run.mu.Unlock()
		default:
			run.made(l.Kind, l.Secret)
		}
	}
}

// Made reports a secret that a test makes itself, such as a provider's key.
func Made(kind logging.Kind, secret string) string {
	logging.Made(kind, secret)
	return secret
}

// Forget stops the search for a secret that the test itself has put into a checked place.
func Forget(secret string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	begin := [shortest]byte([]byte(secret))
	run.secrets[begin] = slices.DeleteFunc(run.secrets[begin], func(k known) bool { return k.secret == secret })
}

// Watch returns a writer that checks everything that is written and passes it on to next; a
// nil next discards it. It may be used concurrently if next may be.
func Watch(name Sink, next io.Writer) io.Writer { return &sink{w: run, name: name, next: next} }

// Logger returns a logger that is checked at every level and passes on to next the records
// that next wants; a nil next discards them.
func Logger(next *slog.Logger) *slog.Logger {
	all := slog.NewTextHandler(Watch(Log, nil), &slog.HandlerOptions{Level: slog.LevelDebug})
	if next == nil {
		return slog.New(all)
	}
	return slog.New(slog.NewMultiHandler(all, next.Handler()))
}

// Check checks the content of a sink.
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

// CheckFolder checks every file of a data folder: its content and its name. The file of
// the operators' key may contain that key.
func CheckFolder(t testing.TB, dir string) {
	t.Helper()
	told.hear()
	if err := run.folder(Data, dir); err != nil {
		t.Error("looking for secrets:", err)
	}
}

// Answers checks a server's error answers and the targets of its redirects.
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

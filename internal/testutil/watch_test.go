package testutil

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/internal/logging"
)

const made = "Zx3_abcdefghijklmnop-0123456789"

// fresh starts a watcher that knows one secret.
func fresh(t *testing.T, kind logging.Kind) {
	t.Helper()
	old := run
	run = newWatcher()
	logging.Tell(run.made)
	t.Cleanup(func() { run = old; logging.Tell(run.made) })
	logging.Made(kind, made)
}

// TestLeaks: the watcher finds a secret in each sink, and does not print it.
func TestLeaks(t *testing.T) {
	file := func(name, text string) func(*testing.T) {
		return func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			CheckFolder(t, dir)
		}
	}
	write := func(pieces ...string) func(*testing.T) {
		return func(t *testing.T) {
			var next bytes.Buffer
			w := Watch(Audit, &next)
			for _, piece := range pieces {
				if _, err := io.WriteString(w, piece); err != nil {
					t.Fatal(err)
				}
			}
			if next.String() != strings.Join(pieces, "") {
				t.Errorf("passed on: %q", next.String())
			}
		}
	}
	answer := func(status int) func(*testing.T) {
		return func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				io.WriteString(w, "no "+made)
			}))
			defer srv.Close()
			client := &http.Client{Transport: Answers(nil)}
			defer client.CloseIdleConnections()
			resp, err := client.Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		kind logging.Kind
		do   func(*testing.T)
		want string // empty: no finding
	}{
		"log, at the lowest level":    {logging.Ticket, func(*testing.T) { Logger(nil).Debug("m", "x", []string{made}) }, "ticket) leaked to a sink (log)"},
		"log, with":                   {logging.Ticket, func(*testing.T) { Logger(slog.New(slog.DiscardHandler)).With("a", made).Info("m") }, "(log)"},
		"written":                     {logging.Ticket, write(`{"x":"` + made + `"}`), "(audit)"},
		"across writes":               {logging.Ticket, write("x"+made[:9], made[9:]), "(audit)"},
		"less than the secret":        {logging.Ticket, write(made[:len(made)-1]), ""},
		"conversation":                {logging.Confirmation, func(t *testing.T) { CheckJSON(t, Conversations, map[string]string{"text": made}) }, "(conversation)"},
		"image of a conversation":     {logging.Image, func(t *testing.T) { CheckJSON(t, Conversations, made) }, ""},
		"error":                       {logging.OperatorsKey, answer(404), "operators' key) leaked to a sink (answer that is an error)"},
		"good answer":                 {logging.OperatorsKey, answer(200), ""},
		"block of the store":          {logging.Ticket, file("nats/1.blk", "\x00\x01"+made+"\x02"), "(data folder), in nats/1.blk"},
		"name of a file":              {logging.Ticket, file(made, ""), "the name of a file"},
		"key in the file of that key": {logging.OperatorsKey, file("operators.key", made), ""},
	} {
		t.Run(name, func(t *testing.T) {
			fresh(t, tc.kind)
			tc.do(t)
			got := strings.Join(run.verdict(Need{}, true), "; ")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || strings.Contains(got, made) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// TestNeed: a full run that made no secret or read no sink fails; a run of selected tests does not.
func TestNeed(t *testing.T) {
	fresh(t, logging.Ticket)
	Check(Log, []byte("a line"))
	need := Need{Kinds: []logging.Kind{logging.Ticket}, Sinks: []Sink{Log}}
	if wrong := run.verdict(need, true); len(wrong) != 0 {
		t.Error(wrong)
	}
	need = Need{Kinds: []logging.Kind{logging.Console}, Sinks: []Sink{Audit}}
	if wrong := run.verdict(need, true); len(wrong) != 2 {
		t.Error(wrong)
	}
	if wrong := run.verdict(need, false); len(wrong) != 0 {
		t.Error(wrong)
	}
}

// TestChildren: the parent reads the secrets and findings of its children, once a line is complete.
func TestChildren(t *testing.T) {
	fresh(t, logging.Image)
	told.path, told.offset = filepath.Join(t.TempDir(), "told"), 0
	t.Cleanup(func() { told.path, told.offset = "", 0 })
	t.Setenv(Env, told.path)
	child := newWatcher()
	func() {
		parent, path := run, told.path
		run, told.path = child, "" // a child reads no reports
		defer func() { run, told.path = parent, path }()
		Child()
		logging.Made(logging.Ticket, "a ticket of the child")
		Check(Log, []byte("child: a ticket of the child"))
	}()
	half, err := json.Marshal(line{Kind: logging.Console, Secret: "a code of the child"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(told.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, piece := range []string{string(half[:9]), string(half[9:]) + "\n"} {
		if _, err := f.WriteString(piece); err != nil {
			t.Fatal(err)
		}
		Check(Audit, []byte("a code of the child; a ticket of the child"))
		if n := len(run.verdict(Need{}, true)); n != 2 && piece == string(half[:9]) || n != 3 && piece != string(half[:9]) {
			t.Errorf("after %q: %v", piece, run.verdict(Need{}, true))
		}
	}
}

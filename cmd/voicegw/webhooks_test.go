package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// hooked is a receiver of webhooks that checks signatures according to the specification.
type hooked struct {
	mu     sync.Mutex // guards the next fields
	key    []byte
	status int
	events []map[string]any
	bad    int
}

func (h *hooked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	mac := hmac.New(sha256.New, h.key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	var event map[string]any
	if !strings.Contains(r.Header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))) || json.Unmarshal(body, &event) != nil {
		h.bad++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if h.status == http.StatusOK {
		h.events = append(h.events, event)
	}
	w.WriteHeader(h.status)
}

// got returns the types and data of the received events.
func (h *hooked) got() (types []string, data []map[string]any, bad int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		types, data = append(types, e["type"].(string)), append(data, e["data"].(map[string]any))
	}
	return types, data, h.bad
}

func (h *hooked) set(key string, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.key, h.status = []byte(key), status
}

const (
	firstHookKey  = "the-first-key-of-thirty-two-bytes"
	secondHookKey = "the-second-key-of-thirty-three-by"
)

// TestWebhooks: the receiver gets the start and end of a session, a secret changes without a wrongly signed event, and
// the next gateway delivers the events left by the last one.
func TestWebhooks(t *testing.T) {
	receiver := &hooked{}
	receiver.set(firstHookKey, http.StatusOK)
	server := httptest.NewServer(receiver)
	defer server.Close()
	dir := t.TempDir()
	file, data := filepath.Join(dir, "voicegw.yaml"), filepath.Join(dir, "data")
	configure := func(keys ...string) {
		t.Helper()
		text := "webhooks:\n  billing:\n    url: \"" + server.URL + "/x?key=hidden\"\n    private: true\n"
		for i, key := range keys {
			text += fmt.Sprintf("    %s: whsec_%s\n", []string{"secret", "old_secret"}[i], base64.StdEncoding.EncodeToString([]byte(key)))
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	talk := func(r *running) {
		t.Helper()
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		for _, m := range []protocol.ClientMessage{&protocol.Start{InputRate: 16000, OutputRate: 24000}, &protocol.End{}} {
			message, err := protocol.EncodeClient(m)
			if err == nil {
				err = conn.WriteText(message)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for err == nil {
			_, err = conn.Read()
		}
	}
	arrived := func(want int) []map[string]any {
		t.Helper()
		testutil.WaitUntil(t, fmt.Sprint(want, " events"), func() bool { types, _, _ := receiver.got(); return len(types) >= want })
		_, data, bad := receiver.got()
		if bad > 0 || len(data) != want {
			t.Errorf("%d events arrived, %d with a wrong signature", len(data), bad)
		}
		return data
	}

	configure(firstHookKey)
	r := start(t, "--config", file, "--data-dir", data)
	talk(r)
	about := arrived(2)
	if about[0]["session_id"] != about[1]["session_id"] || about[0]["provider"] == "" {
		t.Errorf("%v", about)
	}
	for _, one := range about {
		if one["ended_at"] != nil && (one["reason"] != "client_ended" || one["close_code"] != 1000.0) {
			t.Errorf("the end: %v", one)
		}
	}

	configure(secondHookKey, firstHookKey) // both sign now
	if status, answer := r.reload(); status != http.StatusOK || fmt.Sprint(answer["changed"]) != "[webhooks.billing]" {
		t.Fatalf("%d %v", status, answer)
	}
	receiver.set(secondHookKey, http.StatusOK)
	talk(r)
	arrived(4)

	receiver.set(secondHookKey, http.StatusInternalServerError)
	talk(r)
	testutil.WaitUntil(t, "attempts fail", func() bool { return strings.Contains(r.err.String(), "webhook event not delivered") })
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Fatalf("it ended with %d", code)
	}
	receiver.set(secondHookKey, http.StatusOK)
	again := start(t, "--config", file, "--data-dir", data)
	arrived(6)
	if log := r.err.String() + again.err.String(); strings.Contains(log, "hidden") || strings.Contains(log, "whsec_") {
		t.Error("the log has a secret")
	}
}

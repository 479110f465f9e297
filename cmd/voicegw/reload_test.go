package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// settingsOf writes a configuration with keys and perhaps other settings.
func settingsOf(t *testing.T, file, more string, keys ...auth.APIKey) {
	t.Helper()
	text := more + "auth:\n  keys:\n"
	for _, key := range keys {
		text += fmt.Sprintf("    k%s:\n      id: %q\n      sha256: %q\n      scopes: [voice]\n", key.ID(), key.ID(), key.Hash())
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReload: a key removed from the configuration is refused and its session ends, while another key's session
// continues. An invalid configuration changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	kept, revoked, late := auth.NewAPIKey(), auth.NewAPIKey(), auth.NewAPIKey()
	settingsOf(t, file, "", kept, revoked)
	r := start(t, "--config", file)
	opens := func(key auth.APIKey) *protocol.Conn {
		t.Helper()
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{Header: http.Header{"Authorization": {"Bearer " + key.Reveal()}}})
		if err != nil {
			return nil
		}
		message, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		if err == nil {
			err = conn.WriteText(message)
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame, err := conn.Read(); err != nil || !strings.Contains(string(frame.Data), "session.started") {
			t.Fatalf("%s, %v", frame.Data, err)
		}
		return conn
	}
	goesOn, ends := opens(kept), opens(revoked)
	if goesOn == nil || ends == nil {
		t.Fatal("a configured key does not open the gateway")
	}
	defer goesOn.Abort()
	defer ends.Abort()

	settingsOf(t, file, "lissen: 1\n", late)
	r.reloads <- syscall.SIGHUP
	if said := r.logged("invalid configuration; keeping the current one"); !strings.Contains(fmt.Sprint(said), "lissen") {
		t.Errorf("the log does not have the problem: %v", said)
	}
	if opens(late) != nil {
		t.Error("part of an invalid configuration was applied")
	}

	settingsOf(t, file, "", kept, late)
	r.reloads <- syscall.SIGHUP
	if said := r.logged("configuration reloaded"); said["keys"] != 2.0 || said["sessions_ended"] != 1.0 {
		t.Errorf("the log has %v", said)
	}
	if _, last := closedWith(ends); !strings.Contains(last, "operator_ended") {
		t.Errorf("the session of the revoked key ends with %s", last)
	}
	if opens(revoked) != nil {
		t.Error("a revoked key opens the gateway")
	}
	if again := opens(late); again == nil {
		t.Error("a new key is refused")
	} else {
		again.Abort()
	}
	pong, err := protocol.EncodeClient(&protocol.Ping{T: 7})
	if err == nil {
		err = goesOn.WriteText(pong)
	}
	if err != nil {
		t.Fatalf("the session of a key that remains has ended: %v", err)
	}
	testutil.WaitUntil(t, "it answers", func() bool {
		frame, err := goesOn.Read()
		if err != nil {
			t.Fatalf("the session of a key that remains has ended: %v", err)
		}
		return strings.Contains(string(frame.Data), "pong")
	})

	settingsOf(t, file, "drain_timeout: 31s\nlimits: {sessions: 7}\n", kept, late)
	r.reloads <- syscall.SIGHUP
	said := r.logged("configuration reloaded; some changes need a restart")
	if said["needs_restart"] != "drain_timeout" || said["changed"] != "limits.sessions" {
		t.Errorf("the log has %v", said)
	}
}

// reload asks the gateway to read its configuration again.
func (r *running) reload() (status int, answer map[string]any) {
	r.t.Helper()
	resp := r.ask("/v1/admin/reload", "")
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// ask sends a request with the operators' key.
func (r *running) ask(path, origin string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key())
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// TestReloadByAnOperator: a reload applies the configuration completely or not at all; the answer names the settings that
// need a restart and each problem with its line.
func TestReloadByAnOperator(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		keys <- req.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer provider.Close()
	dir := t.TempDir()
	file, prices := filepath.Join(dir, "voicegw.yaml"), filepath.Join(dir, "prices.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const table = "version: 1\ndate: 2026-11-25\nprices:\n  - models: [mine]\n    source: us\n    input: {text: %d}\n    output: {text: 2}\n"
	write(prices, fmt.Sprintf(table, 1))
	settings := func(key, more string) string {
		return "prices: {file: prices.yaml}\nproviders: {openai: {api_key: " + key + ", base_url: \"" + provider.URL + "/v1\"}}\n" + more
	}
	write(file, settings("sk-the-first-key", ""))
	r := start(t, "--config", file)
	tried := func() string {
		t.Helper()
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		message, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		if err == nil {
			err = conn.WriteText(message)
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case key := <-keys:
			return key
		case <-time.After(testutil.WaitLimit):
			t.Fatal("the provider was not asked")
			return ""
		}
	}
	page := func() int {
		t.Helper()
		resp := r.ask("/v1/drain/none", "https://app.example.com")
		resp.Body.Close()
		return resp.StatusCode
	}
	if key := tried(); key != "Bearer sk-the-first-key" || page() != http.StatusForbidden {
		t.Fatalf("the provider was asked with %q", key)
	}

	// One mistake, here or in another file, and nothing is applied.
	more := "origins: [\"https://app.example.com\"]\ndrain_timeout: 31s\nlog: {level: debug}\n"
	write(file, settings("sk-the-second-key", more+"limits: {sessions: many}\nlissen: 1\n"))
	status, answer := r.reload()
	if said := fmt.Sprint(answer); status != http.StatusUnprocessableEntity || !strings.Contains(said, "voicegw.yaml:6") || !strings.Contains(said, "voicegw.yaml:7") || strings.Contains(said, "sk-the") {
		t.Errorf("two mistakes: %d %v", status, said)
	}
	write(file, settings("sk-the-second-key", more))
	write(prices, "version: 1\nprizes: 2\n")
	if status, answer := r.reload(); status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(answer), "prices.yaml:2") {
		t.Errorf("prices that are wrong: %d %v", status, answer)
	}
	if key := tried(); key != "Bearer sk-the-first-key" || page() != http.StatusForbidden {
		t.Errorf("part of the refused configuration is applied: the provider was asked with %q", key)
	}

	write(prices, fmt.Sprintf(table, 5))
	status, answer = r.reload()
	want := map[string]any{"changed": []any{"log.level", "origins", "prices.file", "providers.openai.api_key"}, "needs_restart": []any{"drain_timeout"}, "sessions_ended": 0.0}
	if status != http.StatusOK || !reflect.DeepEqual(answer, want) {
		t.Errorf("%d %v, want %v", status, answer, want)
	}
	if key := tried(); key != "Bearer sk-the-second-key" || page() != http.StatusNotFound {
		t.Errorf("the new configuration is not applied: the provider was asked with %q, the page gets %d", key, page())
	}
	if _, answer = r.reload(); fmt.Sprint(answer["changed"]) != "[]" || fmt.Sprint(answer["needs_restart"]) != "[drain_timeout]" {
		t.Errorf("a reload of the same: %v", answer)
	}
	if log := r.err.String(); strings.Contains(log, "sk-the") {
		t.Error("the log has a key")
	}
}

// TestReloadKeepsTheLastCredential: no kind of reload removes the last credential of a gateway, and the answer explains
// the refusal.
func TestReloadKeepsTheLastCredential(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, keys := filepath.Join(dir, "voicegw.yaml"), filepath.Join(dir, "keys.pem")
	first := newSigner(t)
	first.publish(t, keys)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("auth:\n  jwt:\n    people:\n      issuer: https://id.example.com\n      audience: [voice]\n      keys_file: " + keys + "\n      algs: [EdDSA]\n")
	r := start(t, "--config", file)
	open := func() bool {
		t.Helper()
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
		if err != nil {
			return false
		}
		defer conn.Abort()
		message, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
		if err == nil {
			err = conn.WriteText(message)
		}
		if err != nil {
			t.Fatal(err)
		}
		frame, err := conn.Read()
		return err == nil && strings.Contains(string(frame.Data), "session.started")
	}
	refused := func(by string) {
		t.Helper()
		said := r.logged("invalid configuration; keeping the current one")
		if !strings.Contains(fmt.Sprint(said), "auth has no key and no issuer any more") || open() {
			t.Errorf("%s: the gateway is open: %v, the log has %v", by, open(), said)
		}
	}
	for _, text := range []string{"", "auth:\n", "insecure: true\n"} {
		write(text)
		r.reloads <- syscall.SIGHUP
		refused("a signal")
		if status, answer := r.reload(); status != http.StatusUnprocessableEntity || !strings.Contains(fmt.Sprint(answer), "auth has no key and no issuer any more") {
			t.Errorf("an operator is answered with %d %v", status, answer)
		}
		refused("an operator")
	}
	newSigner(t).publish(t, keys)
	refused("a file of keys")
}

// TestReloadUnderLoad: repeated and concurrent reloads, while sessions start and end and requests arrive.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	key := auth.NewAPIKey()
	settingsOf(t, file, "", key)
	r := start(t, "--config", file, "--set", "limits.exempt_loopback=true")
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	var talked atomic.Int64
	for range 3 {
		busy.Go(func() {
			for ctx.Err() == nil {
				conn, err := protocol.Dial(ctx, "ws://"+r.addr+"/v1/voice", protocol.DialOptions{Header: http.Header{"Authorization": {"Bearer " + key.Reveal()}}})
				if err != nil {
					continue // too many at the moment
				}
				message, _ := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
				if conn.WriteText(message) == nil {
					if frame, err := conn.Read(); err == nil && strings.Contains(string(frame.Data), "session.started") {
						talked.Add(1)
						end, _ := protocol.EncodeClient(&protocol.End{})
						_ = conn.WriteText(end)
						for err == nil {
							_, err = conn.Read()
						}
					}
				}
				conn.Abort()
			}
		})
	}
	for i := range 20 {
		more := fmt.Sprintf("origins: [\"https://a%d.example.com\"]\nlog: {level: %s}\nlimits: {sessions: %d, turns: %d, user_sessions: %d, connections: %d}\n",
			i, []string{"debug", "info"}[i%2], 3+i, 1+i, i, 100+i)
		settingsOf(t, file, more, key)
		var two sync.WaitGroup
		for range 2 {
			two.Go(func() {
				if status, answer := r.reload(); status != http.StatusOK {
					t.Errorf("%d %v", status, answer)
				}
			})
		}
		r.reloads <- syscall.SIGHUP
		two.Wait()
	}
	testutil.WaitUntil(t, "sessions begin", func() bool { return talked.Load() > 0 })
	stop()
	busy.Wait()
}

// TestReloadAgents: a reload reads agent files again; a broken one changes neither the agents nor another setting.
func TestReloadAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "voicegw.yaml"), filepath.Join(dir, "agents")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	configured := fmt.Sprintf("agents:\n  path: %q\n", folder)
	write(file, configured)
	billing, sales := filepath.Join(folder, "billing.yaml"), filepath.Join(folder, "sales.yaml")
	write(billing, "id: billing\nname: Billing\nplaybook: Bills.\n")
	r := start(t, "--config", file)
	names := func() string {
		t.Helper()
		resp, err := http.Get("http://" + r.addr + "/v1/providers")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var reply struct{ Agents []string }
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
			t.Fatal(err)
		}
		return strings.Join(reply.Agents, " ")
	}
	if got := names(); got != "default billing" {
		t.Fatalf("there is %s", got)
	}

	write(sales, "id: sales\nname: Sales\nplaybook: Sell.\n")
	write(billing, "id: billing\nname: Billing\nplaybook: Bills.\ntools: [kb_serch]\nswitch_to: [sales]\n")
	r.reloads <- syscall.SIGHUP
	if said := fmt.Sprint(r.logged("invalid configuration; keeping the current one")); !strings.Contains(said, "billing.yaml:4") || !strings.Contains(said, "kb_search") {
		t.Errorf("the log does not have the problem: %v", said)
	}
	if got := names(); got != "default billing" {
		t.Errorf("files with one broken file were applied in part: there is %s", got)
	}

	write(billing, "id: billing\nname: Billing\nplaybook: Bills.\nswitch_to: [sales]\n")
	r.reloads <- syscall.SIGHUP
	if said := r.logged("configuration reloaded"); said["changed"] != "agents.path" {
		t.Errorf("the log has %v", said)
	}
	if got := names(); got != "default billing sales" {
		t.Errorf("there is %s", got)
	}
}

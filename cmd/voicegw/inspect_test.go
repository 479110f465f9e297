package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestInspectTicket: with a key configured, only a client with a ticket made for it inspects its session.
func TestInspectTicket(t *testing.T) {
	t.Parallel()
	const key = "0123456789abcdef-key"
	r := start(t, "--set", "api_key="+key, "--set", "drain_timeout=1s")
	ticket := func(body string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/v1/sessions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		var offer struct{ Ticket string }
		if err != nil || json.Unmarshal(text, &offer) != nil || offer.Ticket == "" {
			t.Fatalf("%d %s, %v", resp.StatusCode, text, err)
		}
		return offer.Ticket
	}
	for name, tc := range map[string]struct {
		ticket string
		want   bool
	}{
		"made for it": {ticket(`{"user":"ada","inspect":true}`), true},
		"another one": {ticket(`{"user":"bob"}`), false},
		"none":        {"", false},
	} {
		conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		start, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000, Inspect: true, Ticket: tc.ticket})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.WriteText(start); err != nil {
			t.Fatal(err)
		}
		f, err := conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		m, err := protocol.ParseServer(f.Data)
		if started, ok := m.(*protocol.SessionStarted); err != nil || !ok || started.Inspect != tc.want {
			t.Errorf("%s: %s, %v", name, f.Data, err)
		}
		conn.Abort()
	}
}

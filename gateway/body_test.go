package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// TestNoFieldTwice: each text endpoint refuses a repeated field by its path, at any depth; fields of different objects
// may have the same name.
func TestNoFieldTwice(t *testing.T) {
	const hi = `"messages":[{"role":"user","content":"x"}]`
	for body, want := range map[string]string{
		`{"user":"ada",` + hi + `,"user":"eve"}`:                       "user",
		`{` + hi + `,` + hi + `}`:                                      "messages",
		`{"messages":[{"role":"user","role":"system","content":"x"}]}`: "messages[0].role",
		`{"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`: "messages[1].content[0].text",
		`{"us\u0065r":"ada",` + hi + `,"user":"eve"}`:                                                                    "user",
	} {
		for _, path := range []string{"/v1/chat", "/v1/chat/completions", "/v1/chat?protocol=ui-message-stream"} {
			a := &fakeAgent{}
			s, _ := chatServer(t, a, nil)
			w := send(s, path, body, nil)
			var reply struct {
				Error struct{ Message, Param string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || w.Code != http.StatusBadRequest || !strings.Contains(reply.Error.Message, "The field "+want+" is repeated") {
				t.Errorf("%s %s: %d %s", path, body, w.Code, w.Body)
			}
			if path == "/v1/chat/completions" && reply.Error.Param != want {
				t.Errorf("%s: the param is %q", body, reply.Error.Param)
			}
			if len(a.requests()) > 0 {
				t.Errorf("%s %s: the agent was asked", path, body)
			}
		}
	}
	repeated := func(body string, folded bool) string {
		var twice repeatedField
		_ = errors.As(unambiguous(json.NewDecoder(strings.NewReader(body)), "", 0, folded), &twice)
		return string(twice)
	}
	for body, want := range map[string]string{
		`{"a":[{"b":1},{"b":2}],"c":{"a":{"a":1}}}`: "", `[[],{},{"a":[]},{"a":{}}]`: "", `{"a":1,"A":2}`: "", ``: "", `{`: "", `{"a":{"b":[1,[2,{"c":1,"c":2}]]}}`: "a.b[1][1].c",
		`[{"a":1},{"a":1,"a":1}]`: "[1].a",
	} {
		if got := repeated(body, false); got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
	if got := repeated(`{"user":"ada","User":"eve"}`, true); got != "User" {
		t.Errorf("%q", got)
	}
}

// TestLargeBodies: a message with images may be larger than others, up to a limit; the number of large bodies in memory
// is limited, per address and in total.
func TestLargeBodies(t *testing.T) {
	body := func(n int) string {
		return `{"messages":[{"role":"user","content":"` + strings.Repeat("x", n) + `"}]}`
	}
	s, _ := chatServer(t, &fakeAgent{}, nil)
	if w := send(s, "/v1/chat/completions", body(maxImageBody), nil); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "8 MiB") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range maxBigBodies + 1 { // each frees its slot, refused or not
		for _, path := range []string{"/v1/chat/completions", "/v1/chat"} {
			if w := send(s, path, body(maxChatBody), nil); w.Code != http.StatusOK {
				t.Fatalf("%d %.200s", w.Code, w.Body)
			}
		}
		if w := send(s, "/v1/chat", `{"x":"`+strings.Repeat("x", maxChatBody)+`"}`, nil); w.Code != http.StatusBadRequest {
			t.Fatalf("%d %.200s", w.Code, w.Body)
		}
	}
	// While other bodies are read, from this address or from all.
	inside := func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }
	var leaves []func()
	for range maxBigOfOne {
		leave, ok := s.big.enter(netip.MustParseAddr("192.0.2.7"), false)
		if !ok {
			t.Fatal("there is no place")
		}
		leaves = append(leaves, leave)
	}
	w := send(s, "/v1/chat", body(maxChatBody), inside)
	if code, _ := problemOf(t, w); w.Code != http.StatusServiceUnavailable || code != "full" || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(s, "/v1/chat", body(9), inside); w.Code != http.StatusOK {
		t.Errorf("a small one: %d %s", w.Code, w.Body)
	}
	for range maxBigBodies - maxBigOfOne {
		leave, ok := s.big.enter(netip.MustParseAddr("192.0.2.8"), true)
		if !ok {
			t.Fatal("there is no place")
		}
		leaves = append(leaves, leave)
	}
	if _, ok := s.big.enter(netip.MustParseAddr("192.0.2.9"), false); ok {
		t.Error("there is a place too many")
	}
	for _, leave := range leaves {
		leave()
	}
	if w := send(s, "/v1/chat", body(maxChatBody), inside); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

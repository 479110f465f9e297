package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestReferenceVector: the signature is the one in the tests of Standard Webhooks' own libraries.
func TestReferenceVector(t *testing.T) {
	s, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), s, s)
	const one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if h.Get("webhook-id") != "msg_p5jXN8AQM9LWM0D4loKWxJek" || h.Get("webhook-timestamp") != "1614265330" || h.Get("webhook-signature") != one+" "+one {
		t.Errorf("%v", h)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
		if strings.Contains(text, "MfKQ") || strings.Contains(text, "49 242") || strings.Contains(text, "0x31") {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}

// TestSecrets: an invalid secret is refused, and not repeated in the error.
func TestSecrets(t *testing.T) {
	for _, text := range []string{"", "hidden", "whsec_", "whsec_hidden!", "whsec_aGlkZGVu", "whsec_" + strings.Repeat("aGlk", 30), "whsk_" + strings.Repeat("aGlk", 10)} {
		if _, err := ParseSecret(text); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// session is an event's data with every field.
func session() Session {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	return Session{SessionID: "voice-1", ConversationID: "c", User: "ada", Principal: "key:a", Entry: "ticket", Agent: "default", Provider: "p", Model: "m", StartedAt: Time(at)}
}

// TestSchema checks events, and the example of docs/webhooks.md, against docs/webhook.schema.json.
func TestSchema(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/webhooks.md has no example")
	}
	text, err := os.ReadFile("../../docs/webhook.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := jsonschema.CompileString("webhook.json", string(text))
	if err != nil {
		t.Fatal(err)
	}
	ended := session()
	ended.End = &End{EndedAt: Time(time.Now()), DurationMS: 5, Reason: "client_ended", CloseCode: 1000, Turns: 1, CostUSDMicros: 2, Unpriced: 3}
	bare := Session{SessionID: "voice-2", Entry: "open", Provider: "p", Model: "m", StartedAt: Time(time.Now())}
	sent := map[string][]byte{"the example": example[1]}
	for name, what := range map[string]struct {
		kind string
		data Session
	}{"started": {SessionStarted, session()}, "bare": {SessionStarted, bare}, "ended": {SessionEnded, ended}} {
		e, err := NewEvent(what.kind, time.Now(), what.data)
		if err != nil {
			t.Fatal(err)
		}
		sent[name] = e.Body
	}
	job, err := NewJobEvent(time.Now(), Job{
		JobID: "job-1", Tool: "report", Name: "Report", State: "done", User: "ada", ConversationID: "c", SessionID: "s", CallID: "t1", Attempts: 1,
		CreatedAt: Time(time.Now()), EndedAt: Time(time.Now()),
	})
	if err != nil {
		t.Fatal(err)
	}
	sent["job"] = job.Body
	properties := fields(t, text, "properties", "data", "properties")
	for name, body := range sent {
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for field := range fields(t, body, "data") {
			if _, told := properties[field]; !told {
				t.Errorf("%s: the schema lacks %s", name, field)
			}
		}
	}
	all := fields(t, sent["ended"], "data")
	maps.Copy(all, fields(t, sent["job"], "data"))
	if len(all) != len(properties) {
		t.Errorf("a complete event has %d fields, the schema %d", len(all), len(properties))
	}
	incomplete := bytes.Replace(sent["ended"], []byte(`"reason"`), []byte(`"raison"`), 1)
	var v any
	if err := json.Unmarshal(incomplete, &v); err != nil || schema.Validate(v) == nil {
		t.Errorf("an end without a reason is valid: %v", err)
	}
}

// fields returns an object of a document.
func fields(t *testing.T, document []byte, path ...string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range path {
		v, _ = v[name].(map[string]any)
	}
	return v
}

// TestIDs: an event has the same ID at every gateway, and each event another one.
func TestIDs(t *testing.T) {
	id := func(kind, session string) string {
		e, err := NewEvent(kind, time.Now(), Session{SessionID: session})
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	one := id(SessionStarted, "a")
	if one != id(SessionStarted, "a") || one == id(SessionEnded, "a") || one == id(SessionStarted, "b") || !regexp.MustCompile(`^evt_[a-z2-7]{26}$`).MatchString(one) {
		t.Error(one)
	}
	if _, err := NewEvent(SessionStarted, time.Now(), Session{SessionID: "a", User: strings.Repeat("x", MaxBody)}); err == nil {
		t.Error("a body that is too large is accepted")
	}
}

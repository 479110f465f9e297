package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"voicegw/audio"
	"voicegw/internal/server"
	"voicegw/internal/testutil"
)

// phoneModel answers speech briefly, and hangs up after keys.
const phoneModel = `
rules:
  - when: {utterance: any}
    do: [{say: "Yes."}]
  - when: {text: 'keys pressed on the phone\] 12#'}
    do:
      - call: {tool: end_voice_session, args: {farewell_message: Goodbye}}
      - then: [{say: "Goodbye."}]
  - when: {text: any}
    do: [{say: "I call about your table."}]
`

const phoneAuthToken = "phone-test-token"

// startPhone starts a gateway that takes calls, and returns the address for the carrier's REST API.
func startPhone(t *testing.T) (r *running, rest string) {
	t.Helper()
	rest, err := testutil.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	scenario := filepath.Join(t.TempDir(), "phone.yaml")
	if err := os.WriteFile(scenario, []byte(phoneModel), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, "--set", "sim.scenario="+scenario, "--set", "limits.exempt_loopback=true",
		"--set", "phone.public_url=https://voice.example.com", "--set", "phone.announcement=We record.",
		"--set", "phone.numbers=+15550100", // the number that docs/phone.md configures is the default of sim phone
		"--set", "phone.twilio.account_sid=AC00000000000000000000000000000000", "--set", "phone.twilio.auth_token="+phoneAuthToken,
		"--set", "phone.twilio.api=http://"+rest, "--set", "phone.outbound.from=+15550100", "--set", "phone.outbound.prefixes=+1555"), rest
}

// simPhone runs the carrier with its output to out, and returns its exit code and errors.
func (r *running) simPhone(out *console, rest string, args ...string) (code int, problems string) {
	var stderr bytes.Buffer
	code = Run(r.t.Context(), Process{
		Stdin: strings.NewReader(""), Args: append([]string{
			"sim", "phone", "--url", "http://" + r.addr, "--public-url", "https://voice.example.com", "--token", phoneAuthToken, "--listen", rest}, args...),
		Host: server.Host{Stdout: out, Stderr: &stderr},
	})
	return code, stderr.String()
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

// TestSimPhone: the caller speaks and presses keys, and the gateway hangs up over the REST API.
func TestSimPhone(t *testing.T) {
	t.Parallel()
	r, rest := startPhone(t)
	heard := filepath.Join(t.TempDir(), "heard.wav")
	var out console
	if code, problems := r.simPhone(&out, rest, "--say", "Good morning.", "--keys", "12#", "--out", heard); code != exitOK {
		t.Errorf("exit code %d: %s", code, problems)
	}
	wants(t, out.String(), "inbound call from +15557654321 to +15550100", "turn 1     speaking Good morning.",
		"the gateway speaks", "the gateway has spoken for", "the caller presses 12#", "the gateway hangs up", "ended: tool_ended")
	clip, err := audio.ReadFile(heard)
	if err != nil || clip.Rate != phoneRate || clip.Duration() == 0 {
		t.Errorf("heard %s at %d Hz, %v", clip.Duration(), clip.Rate, err)
	}
	if code, problems := r.simPhone(new(console), rest, "--token", "another"); code != exitFailure || !strings.Contains(problems, "403 Forbidden") {
		t.Errorf("a forged call: exit code %d: %s", code, problems)
	}
}

// TestSimPhoneAnswers: the gateway orders a call, and its model speaks first.
func TestSimPhoneAnswers(t *testing.T) {
	t.Parallel()
	r, rest := startPhone(t)
	order := func() int {
		body := strings.NewReader(`{"to":"+15557654321","pending_request":"The table is free."}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/v1/phone/calls", body)
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+r.key())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer resp.Body.Close()
		var begun struct{ Error struct{ Message string } }
		if err := json.NewDecoder(resp.Body).Decode(&begun); err != nil {
			t.Error(err)
		}
		return resp.StatusCode
	}
	var out console
	ended := make(chan string)
	go func() {
		code, problems := r.simPhone(&out, rest, "--answer", "--keys", "12#")
		if code == exitOK {
			problems = ""
		}
		ended <- problems
	}()
	testutil.WaitUntil(t, "the carrier's REST API", func() bool { return strings.Contains(out.String(), "REST API") })
	if status := order(); status != http.StatusCreated {
		t.Errorf("ordering the call: %d", status)
	}
	if problems := <-ended; problems != "" {
		t.Error(problems)
	}
	wants(t, out.String(), "the gateway orders a call to +15557654321", "outbound-api call from +15550100 to +15557654321", "the gateway speaks",
		"the gateway hangs up")
}

func TestSimPhoneFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"a phone has the keys":       {"--keys", "12a"},
		"--audio nothing.wav":        {"--audio", "nothing.wav"},
		"other machines can reach":   {"--listen", "0.0.0.0:0"},
		"--timeout must be positive": {"--timeout", "0s"},
		"--out":                      {"--out", "/nowhere/heard.wav"},
	} {
		var stderr bytes.Buffer
		p := Process{Args: append([]string{"sim", "phone"}, args...), Host: server.Host{Stdout: &bytes.Buffer{}, Stderr: &stderr}}
		if code := Run(t.Context(), p); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit code %d: %s", args, code, stderr.String())
		}
	}
}

package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/sim/wire"
)

const constrainedPath = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained"

func (b *bench) mint(body string) string {
	b.t.Helper()
	code, name := b.mintStatus("k", body)
	if code != http.StatusOK || !strings.HasPrefix(name, "auth_tokens/") {
		b.t.Fatalf("token: %d %q", code, name)
	}
	return name
}

func (b *bench) mintStatus(key, body string) (int, string) {
	b.t.Helper()
	resp, err := b.http.Post("http://sim/v1alpha/auth_tokens?key="+key, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct {
		Name  string
		Error struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, out.Name + out.Error.Message
}

// enter connects with a token; the reason is empty on success.
func (b *bench) enter(token, setup string) (*client, string) {
	b.t.Helper()
	c := b.dial(constrainedPath, http.Header{"Authorization": {"Token " + token}})
	c.send(setup)
	f, err := c.read(time.Minute)
	if err == nil && f.key() == "setupComplete" {
		return c, ""
	}
	if err == nil {
		b.t.Fatalf("got %s", f.raw)
	}
	return c, err.Error()
}

func TestTokens(t *testing.T) {
	setup := setupFor(model25, `"sessionResumption":{}`)
	t.Run("one use by default, resuming costs none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, wire.Options{})
			tok := b.mint(`{}`)
			c, problem := b.enter(tok, setup)
			if problem != "" {
				t.Fatal(problem)
			}
			c.send(typed("hi"))
			c.untilTurn()
			handle, _ := c.next().val["sessionResumptionUpdate"].(map[string]any)["newHandle"].(string)
			_ = c.ws.Close(1000, "")
			synctest.Wait()
			if _, problem := b.enter(tok, setup); !strings.Contains(problem, "no uses left") {
				t.Errorf("second use: %q", problem)
			}
			if _, problem := b.enter(tok, setupFor(model25, `"sessionResumption":{"handle":"`+handle+`"}`)); problem != "" {
				t.Errorf("resuming: %s", problem)
			}
		})
	})
	t.Run("query parameter, as browsers do", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, wire.Options{})
			c := b.dial(constrainedPath+"?access_token="+b.mint(""), nil)
			c.send(setup)
			if f := c.next(); f.key() != "setupComplete" {
				t.Errorf("got %s", f.raw)
			}
		})
	})
	t.Run("times", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, wire.Options{GoAwayAfter: -1, SessionLife: -1})
			tok := b.mint(`{"uses":0}`)
			c, problem := b.enter(tok, setup)
			if problem != "" {
				t.Fatal(problem)
			}
			<-time.After(61 * time.Second)
			if _, problem := b.enter(tok, setup); !strings.Contains(problem, "expired") {
				t.Errorf("a session after newSessionExpireTime: %q", problem)
			}
			began := time.Now()
			e := c.closed()
			if d := time.Since(began); e.Code != 1007 || d > 30*time.Minute || d < 28*time.Minute {
				t.Errorf("a session at expireTime: closed %d after %v", e.Code, d)
			}
		})
	})
	t.Run("only where tokens belong", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, wire.Options{})
			c := b.dial(betaPath+"?key="+b.mint(""), nil)
			c.send(setup)
			if e := c.closed(); e.Code != 1007 {
				t.Errorf("a token as a key: %d %q", e.Code, e.Reason)
			}
			if _, problem := b.enter("plain-key", setup); problem == "" {
				t.Error("a key was accepted as a token")
			}
			if _, problem := b.enter("auth_tokens/unknown", setup); problem == "" {
				t.Error("an unknown token was accepted")
			}
		})
	})
}

// TestTokenConstraints: a token's setup has priority over the client's.
func TestTokenConstraints(t *testing.T) {
	tests := []struct {
		name, request, setup string
		model                string // the session's
		instructions         string
	}{
		{
			"everything is locked", `{"bidiGenerateContentSetup":{"setup":{"model":"` + model31 + `","systemInstruction":{"parts":[{"text":"token"}]}}}}`,
			setupFor(model25, `"systemInstruction":{"parts":[{"text":"client"}]}`), model31, "token",
		},
		{
			"some fields are locked", `{"bidi_generate_content_setup":{"model":"` + model31 + `"},"bidiGenerateContentSetup":{"model":"` + model31 + `"},"fieldMask":"model"}`,
			setupFor(model25, `"systemInstruction":{"parts":[{"text":"client"}]}`), model31, "client",
		},
		{
			"a locked field that is not set is removed", `{"bidiGenerateContentSetup":{"model":"` + model25 + `"},"fieldMask":"model,system_instruction"}`,
			setupFor(model31, `"systemInstruction":{"parts":[{"text":"client"}]}`), model25, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var q tokenRequest
			if err := json.Unmarshal([]byte(tt.request), &q); err != nil {
				t.Fatal(err)
			}
			tok, problem := q.token(time.Now())
			if problem != "" {
				t.Fatal(problem)
			}
			m, cerr := parseMessage([]byte(tt.setup))
			if cerr != nil {
				t.Fatal(cerr)
			}
			tok.constrain(m.Setup.raw)
			got := &setupMessage{}
			if err := retype(m.Setup.raw, got); err != nil {
				t.Fatal(err)
			}
			if got.Model != tt.model || got.SystemInstruction.text() != tt.instructions {
				t.Errorf("model %q, instructions %q", got.Model, got.SystemInstruction.text())
			}
		})
	}
}

func TestTokenRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{})
		for _, tt := range []struct {
			key, body string
			code      int
			message   string
		}{
			{"", "", 403, "Method doesn't allow unregistered callers"},
			{"invalid", "", 400, "API key not valid"},
			{"quota", "", 429, "You exceeded your current quota"},
			{"k", "{", 400, "Invalid JSON payload received."},
			{"k", `{"uses":-1}`, 400, "uses"},
			// The bubble's clock begins at 2000-01-01 00:00 UTC.
			{"k", `{"expireTime":"1999-12-31T00:00:00Z"}`, 400, "expire_time"},
			{"k", `{"expireTime":"2000-01-02T00:00:00Z"}`, 400, "20 hours"},
			{"k", `{"bidiGenerateContentSetup":{"modell":"x"}}`, 400, `Unknown name "modell"`},
		} {
			code, message := b.mintStatus(tt.key, tt.body)
			if code != tt.code || !strings.Contains(message, tt.message) {
				t.Errorf("%s %s: %d %q, want %d %q", tt.key, tt.body, code, message, tt.code, tt.message)
			}
		}
		resp, err := b.http.Get("http://sim/v1/auth_tokens?key=k")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET: %s", resp.Status)
		}
	})
}

// FuzzTokens: no request for a token breaks the reader, and any accepted constraints leave a valid setup.
func FuzzTokens(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"uses":0,"expireTime":"2000-01-01T00:10:00Z"}`, `{"bidiGenerateContentSetup":{"setup":{"model":"m"}},"fieldMask":"model,a.b,,"}`,
		`{"bidiGenerateContentSetup":{"generationConfig":{"temperature":0.5}},"fieldMask":"generation_config.temperature"}`, `[`, "\xff",
	} {
		f.Add([]byte(body))
	}
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte) {
		tok, problem := parseToken(body, now)
		if (tok == nil) != (problem != "") {
			t.Fatalf("token %v, problem %q", tok, problem)
		}
		if tok == nil {
			return
		}
		m, err := parseMessage([]byte(setupFor(model25, `"generationConfig":{"temperature":1}`)))
		if err != nil {
			t.Fatal(err)
		}
		tok.constrain(m.Setup.raw)
		if err := retype(m.Setup.raw, &setupMessage{}); err != nil {
			t.Errorf("the constrained setup cannot be read: %v", err)
		}
	})
}

package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/auth"
)

// granted is the answer of the console's endpoints.
type granted struct {
	Code      string    `json:"code"`
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

func login(t *testing.T, s *Server, code string) (int, granted) {
	t.Helper()
	w := send(s, "/v1/console/login", `{"code":"`+code+`"}`, nil)
	var g granted
	if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil || code != "" && strings.Contains(w.Body.String(), code) {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, g
}

func bearer(secret string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
}

// TestConsoleIsOpenedOnce: a code works once and for a quarter of an hour, the token exchanged for it for half a day, and
// neither is the key.
func TestConsoleIsOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := New(Options{Blocks: &fakeBlocks{}, Auth: operators(testKey), Logger: logTo(&log)})
		code := s.ConsoleCode()
		status, first := login(t, s, code)
		if status != http.StatusOK || first.Token == "" || first.Token == code || time.Until(first.ExpiresAt).Round(time.Second) != consoleTokenLife {
			t.Fatalf("%d %+v", status, first)
		}
		if again, g := login(t, s, code); again != http.StatusUnauthorized || g.Token != "" {
			t.Errorf("a second time: %d %+v", again, g)
		}
		if w := ask(s, "GET", "/v1/blocks", bearer(first.Token)); w.Code != http.StatusOK {
			t.Errorf("its token: %d %s", w.Code, w.Body)
		}
		if w := ask(s, "GET", "/v1/blocks", bearer(code)); w.Code != http.StatusUnauthorized {
			t.Errorf("a code is not a token: %d", w.Code)
		}
		if w := ask(s, "POST", "/v1/console/codes", bearer(first.Token)); w.Code != http.StatusUnauthorized {
			t.Errorf("a token makes codes and could last forever: %d", w.Code)
		}
		w := ask(s, "POST", "/v1/console/codes", nil)
		var other granted
		if err := json.Unmarshal(w.Body.Bytes(), &other); err != nil || w.Code != http.StatusCreated || time.Until(other.ExpiresAt).Round(time.Second) != consoleCodeLife {
			t.Fatalf("%d %s %v", w.Code, w.Body, err)
		}
		late := s.ConsoleCode()
		wait(consoleCodeLife - time.Second)
		if status, _ := login(t, s, other.Code); status != http.StatusOK {
			t.Errorf("a code of the key's owner: %d", status)
		}
		wait(time.Second)
		if status, _ := login(t, s, late); status != http.StatusUnauthorized {
			t.Errorf("after its time: %d", status)
		}
		wait(consoleTokenLife)
		if w := ask(s, "GET", "/v1/blocks", bearer(first.Token)); w.Code != http.StatusUnauthorized {
			t.Errorf("a token after its time: %d", w.Code)
		}
		for _, secret := range []string{testKey, code, other.Code, late, first.Token} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("a secret is in the log: %s", log.String())
			}
		}
	})
}

// TestConsoleLoginIsRefused: an invalid code is refused and not repeated in the answer.
func TestConsoleLoginIsRefused(t *testing.T) {
	s := New(Options{Auth: operators(testKey)})
	for body, want := range map[string]int{
		`{"code":"wrong"}`: 401, `{"code":"` + testKey + `"}`: 401, `{"code":""}`: 400, `{}`: 400, `{"code":1}`: 400, `wrong`: 400, ``: 400,
		`{"code":"` + strings.Repeat("x", 2000) + `"}`: 400,
	} {
		if w := send(s, "/v1/console/login", body, nil); w.Code != want || strings.Contains(w.Body.String(), testKey) {
			t.Errorf("%.40s: %d %s", body, w.Code, w.Body)
		}
	}
	form := func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }
	if w := send(s, "/v1/console/login", `{"code":"`+s.ConsoleCode()+`"}`, form); w.Code != 400 {
		t.Errorf("a form: %d", w.Code)
	}
	if w := send(s, "/v1/console/login", `{"code":"`+s.ConsoleCode()+`"}`, header("Origin", "https://evil.test")); w.Code != 403 {
		t.Errorf("a foreign page with a code: %d", w.Code)
	}
	without := New(Options{})
	if code := without.ConsoleCode(); code != "" {
		t.Error("a gateway without a key makes codes")
	}
	if status, _ := login(t, without, "x"); status != 401 {
		t.Errorf("a gateway without a key: %d", status)
	}
}

// TestConsoleGrantsAreBounded: the oldest grant is removed first.
func TestConsoleGrantsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Auth: operators(testKey)})
		var codes []string
		for range maxConsoleGrants + 1 {
			codes = append(codes, s.ConsoleCode())
			wait(time.Millisecond)
		}
		if n := len(s.callers.console.codes); n != maxConsoleGrants {
			t.Errorf("%d codes are stored", n)
		}
		if status, _ := login(t, s, codes[0]); status != http.StatusUnauthorized {
			t.Errorf("the oldest: %d", status)
		}
		for _, code := range slices.Backward(codes[1:]) {
			if status, _ := login(t, s, code); status != http.StatusOK {
				t.Fatalf("another: %d", status)
			}
		}
	})
}

// wait advances the fake time of synctest.
func wait(d time.Duration) { <-time.After(d) }

// TestConsoleEndsWithItsKey: codes and tokens of a console become invalid with the credentials that made them.
func TestConsoleEndsWithItsKey(t *testing.T) {
	admin, other := auth.NewAPIKey(), auth.NewAPIKey()
	entry := func(k auth.APIKey, expires time.Time) auth.Key {
		return auth.Key{ID: k.ID(), Name: "admin", Hash: k.Hash(), Scopes: auth.ScopeAdmin, Expires: expires}
	}
	who := func(operator string, keys ...auth.Key) *auth.Authenticator {
		a, err := auth.New(auth.Options{OperatorKey: operator, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(time.Hour)
		current := auth.Only(who(testKey, entry(admin, time.Time{}), entry(other, soon)))
		s := New(Options{Blocks: &fakeBlocks{}, Auth: current})
		code := func(key string) granted {
			t.Helper()
			w := ask(s, "POST", "/v1/console/codes", bearer(key))
			var g granted
			if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil || w.Code != http.StatusCreated {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			return g
		}
		token := func(key string) granted {
			t.Helper()
			status, g := login(t, s, code(key).Code)
			if status != http.StatusOK {
				t.Fatalf("%d", status)
			}
			return g
		}
		opens := func(token string) bool {
			t.Helper()
			return ask(s, "GET", "/v1/blocks", bearer(token)).Code == http.StatusOK
		}
		ofOperator, ofAdmin, ofOther := token(testKey), token(admin.Reveal()), token(other.Reveal())
		unused, atStart := code(testKey), s.ConsoleCode()
		if !ofOther.ExpiresAt.Equal(soon.Truncate(time.Millisecond)) {
			t.Errorf("the token of a key that expires at %v expires at %v", soon, ofOther.ExpiresAt)
		}
		if !opens(ofOperator.Token) || !opens(ofAdmin.Token) || !opens(ofOther.Token) {
			t.Fatal("a token is refused")
		}
		current.Swap(who("another-operators-key", entry(admin, time.Time{}), entry(other, soon)))
		if opens(ofOperator.Token) || !opens(ofAdmin.Token) || !opens(ofOther.Token) {
			t.Error("the operators' key has changed: its token must be refused, and the others accepted")
		}
		for _, c := range []string{unused.Code, atStart} {
			if status, _ := login(t, s, c); status != http.StatusUnauthorized {
				t.Errorf("a code of the operators' key before: %d", status)
			}
		}
		if status, _ := login(t, s, code("another-operators-key").Code); status != http.StatusOK {
			t.Errorf("a code of the operators' key now: %d", status)
		}
		wait(time.Hour)
		if opens(ofOther.Token) || !opens(ofAdmin.Token) {
			t.Error("a key has expired: its token must be refused, and the other accepted")
		}
		unusedAdmin := code(admin.Reveal())
		current.Swap(who("another-operators-key"))
		if opens(ofAdmin.Token) {
			t.Error("the token of a removed key is accepted")
		}
		if status, _ := login(t, s, unusedAdmin.Code); status != http.StatusUnauthorized {
			t.Errorf("the code of a removed key: %d", status)
		}
	})
}

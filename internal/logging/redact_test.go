package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

// secrets are made up, each in a sentence of a library or a provider. The part that must not be written is between ‹ and
// ›.
var secrets = []string{
	`dial "wss://host/ws?alt=json&key=‹AbCdEf123›&x=1": refused`,
	`Get "https://‹ada:p4ssw0rd›@host/path": EOF`,
	`Authorization: Bearer ‹abc.def-123_~+/=› was not taken`,
	`Incorrect API key provided: ‹sk-proj-0123456789abcdef›.`,
	`API key ‹AIzaSyA0123456789012345678901234567890› is not valid`,
	`POST /v1/confirmations/‹whatever1234›`,
	`POST /v1/confirmations: ‹cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ› is used`,
	`GET /v1/images/‹Zx3_abcdefghijklmnop-0123456789› 404`,
	`the subprotocol voicegw.ticket.‹Zx3_abcdefgh-0123› was offered`,
	`Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.‹whatever_1234›, openai-beta.x`,
	`the client secret ‹ek_abcdefghijklmnop0123456789› is wrong`,
	`the subprotocol voicegw.key.‹Zx3_abcdefgh.0123› was offered`,
	`keys: vgk_0123abcd_‹q1vXH0c9y2bA7eLkPZ5sTnRwUjMdGfKoIxCuV8B4N6g› twice`,
	`?access_token=‹ya29.a0AfH6SMBx›&scope=x`,
	`id token ‹eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sflKxwRJ›`,
	`it said ‹the configured one› twice: ‹the configured one›`,
}

// split returns a sentence and its secret part.
func split(sentence string) (text string, hidden []string) {
	for i, part := range strings.FieldsFunc(sentence, func(r rune) bool { return r == '‹' || r == '›' }) {
		if i%2 == 1 {
			hidden = append(hidden, part)
		}
	}
	return strings.NewReplacer("‹", "", "›", "").Replace(sentence), hidden
}

// TestNoSecretIsWritten: no handler of the program writes a secret, in any part of a record.
func TestNoSecretIsWritten(t *testing.T) {
	r := NewRedactor("the configured one", "short")
	for _, sentence := range secrets {
		text, hidden := split(sentence)
		for name, log := range map[string]func(*slog.Logger){
			"message":   func(l *slog.Logger) { l.Info(text) },
			"text":      func(l *slog.Logger) { l.Info("x", "a", text) },
			"error":     func(l *slog.Logger) { l.Info("x", "error", fmt.Errorf("wrapped: %w", errors.New(text))) },
			"url.Error": func(l *slog.Logger) { l.Info("x", "error", &url.Error{Op: "Get", URL: text, Err: errors.New("EOF")}) },
			"list":      func(l *slog.Logger) { l.Info("x", "a", []string{"y", text}) },
			"pointer":   func(l *slog.Logger) { l.Info("x", "a", &struct{ A *string }{&text}) },
			"group":     func(l *slog.Logger) { l.Info("x", slog.Group("g", slog.Group("h", "a", text))) },
			"with":      func(l *slog.Logger) { l.With("a", text).WithGroup("g").Info("x") },
			"valuer":    func(l *slog.Logger) { l.Info("x", "a", late(text)) },
			"bytes":     func(l *slog.Logger) { l.Info("x", "a", text2(text)) },
		} {
			var out bytes.Buffer
			for _, next := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
				log(slog.New(r.Handler(next)))
			}
			for _, secret := range hidden {
				if strings.Contains(out.String(), secret) {
					t.Errorf("%s: a secret of %q was written: %s", name, sentence, &out)
				}
			}
			if !strings.Contains(out.String(), Mask) {
				t.Errorf("%s: the text does not show that a secret was removed: %s", name, &out)
			}
		}
	}
}

type late string

func (l late) LogValue() slog.Value { return slog.StringValue(string(l)) }

type text2 string

func (t text2) String() string { return string(t) }

// TestSecretNames: the value of an attribute with a secret's name is secret.
func TestSecretNames(t *testing.T) {
	var out bytes.Buffer
	slog.New(NewRedactor().Handler(slog.NewTextHandler(&out, nil))).Info("x", "ticket", "opaque", "token", []byte("opaque"), slog.Group("g", "password", "opaque"))
	if strings.Contains(out.String(), "opaque") || strings.Count(out.String(), Mask) != 3 {
		t.Error(&out)
	}
}

// TestOtherTextIsUnchanged: other text and attributes are written unchanged, with their types.
func TestOtherTextIsUnchanged(t *testing.T) {
	log := func(l *slog.Logger) {
		l.With("n", 7).Warn("session refused", "addr", "192.0.2.7", "reason", "key_missing", "input_tokens", 12, "ok", true, "error", errors.New("short"),
			"list", []string{"a"}, "url", "https://host/path?x=1", "note", "risk-management-of-tasks task-0123456789abcdef", slog.Group("g", "a", 1.5))
	}
	var plain, fenced bytes.Buffer
	drop := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	log(slog.New(slog.NewJSONHandler(&plain, drop)))
	log(slog.New(NewRedactor("short").Handler(slog.NewJSONHandler(&fenced, drop))))
	if plain.String() != fenced.String() {
		t.Errorf("it was %sand is %s", &plain, &fenced)
	}
}

// FuzzText: no text panics, and no known secret remains.
func FuzzText(f *testing.F) {
	for _, s := range secrets {
		f.Add(s)
	}
	r := NewRedactor("the configured one")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(r.Text(text+"the configured one"+text), "the configured one") {
			t.Fatal(text)
		}
	})
}

// TestKnow: secrets added later are not written either, even by existing loggers.
func TestKnow(t *testing.T) {
	r := NewRedactor("the-first-secret")
	var out bytes.Buffer
	log := slog.New(r.Handler(slog.NewTextHandler(&out, nil))).With("a", 1)
	r.Know("the-second-secret", "the-first-secret")
	log.Info("the-second-secret and the-first-secret")
	if text := out.String(); strings.Contains(text, "-secret") {
		t.Error(text)
	}
}

package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const hookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// TestWebhooks: an error reports every problem of a receiver, without secrets.
func TestWebhooks(t *testing.T) {
	hook := func(more string) string { return "webhooks:\n  a: {" + more + "}\n" }
	for name, tc := range map[string]struct{ text, want string }{
		"valid":              {hook(`url: "https://h.example/x?k=hidden", secret: "` + hookSecret + `"`), ""},
		"http inside":        {hook(`url: "http://billing:8080/x", private: true, secret: "` + hookSecret + `", old_secret: "` + hookSecret + `"`), ""},
		"no url, no secret":  {hook(`private: true`), "webhooks.a.url is missing;webhooks.a.secret is missing"},
		"http outside":       {hook(`url: "http://hidden.example", secret: "` + hookSecret + `"`), "webhooks.a.url must begin with https://"},
		"this machine":       {hook(`url: "https://127.0.0.1/hidden", secret: "` + hookSecret + `"`), "webhooks.a.url names this machine"},
		"a private network":  {hook(`url: "https://10.1.2.3/hidden", secret: "` + hookSecret + `"`), "webhooks.a.url names this machine"},
		"a password":         {hook(`url: "https://u:hidden@h.example", secret: "` + hookSecret + `"`), "webhooks.a.url has a user"},
		"no URL":             {hook(`url: "hidden", secret: "` + hookSecret + `"`), "webhooks.a.url must be a whole URL"},
		"a short secret":     {hook(`url: "https://h.example", secret: "whsec_aGlkZGVu"`), "webhooks.a.secret has 6 bytes"},
		"a wrong old secret": {hook(`url: "https://h.example", secret: "` + hookSecret + `", old_secret: hidden`), "webhooks.a.old_secret must begin with whsec_"},
		"an unknown event":   {hook(`url: "https://h.example", secret: "` + hookSecret + `", events: [session.begun]`), "webhooks.a.events has the entry \"session.begun\""},
		"no event":           {hook(`url: "https://h.example", secret: "` + hookSecret + `", events: []`), "webhooks.a.events is empty"},
		"a long timeout":     {hook(`url: "https://h.example", secret: "` + hookSecret + `", timeout: 2m`), "webhooks.a.timeout must be from 1s to 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": tc.text}.ReadFile})
			if tc.want == "" {
				if err != nil || len(c.Webhooks["a"].Secrets()) == 0 || !slices.Contains(c.Secrets(), c.Webhooks["a"].URL.Reveal()) {
					t.Errorf("%v", err)
				}
				if text := fmt.Sprintf("%+v %v", c, c.Webhooks["a"]); strings.Contains(text, "hidden") || strings.Contains(text, "whsec") {
					t.Errorf("the configuration prints %s", text)
				}
				return
			}
			if err == nil {
				t.Fatal("the configuration is accepted")
			}
			if strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), hookSecret) {
				t.Errorf("a secret is repeated: %v", err)
			}
			for want := range strings.SplitSeq(tc.want, ";") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
	var many strings.Builder
	for i := range mostReceivers + 1 {
		fmt.Fprintf(&many, "  a%d: {url: \"https://h.example\", secret: %q}\n", i, hookSecret)
	}
	if _, _, err := Load(Source{File: "voicegw.yaml", ReadFile: files{"voicegw.yaml": "webhooks:\n" + many.String()}.ReadFile}); err == nil {
		t.Error("too many receivers are accepted")
	}
}

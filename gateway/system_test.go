package gateway

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"voicegw/chat"
	"voicegw/transport/textmodel"
)

// messages lets cmp compare messages.
var messages = cmp.Options{cmp.AllowUnexported(textmodel.Message{}), cmpopts.IgnoreFields(chat.Request{}, "Key")}

// TestSystemMessages: both endpoints accept messages of the roles system and developer from operators, and refuse those
// of other callers.
func TestSystemMessages(t *testing.T) {
	const key = "a-key-of-this-test"
	for name, tc := range map[string]struct {
		change func(*http.Request)
		key    string
		made   bool // the gateway created the key itself, and completions do not require it
		plain  int  // the status at /v1/chat
		open   int  // the status at /v1/chat/completions
	}{
		"from elsewhere, no key there is":  {plain: 403, open: 403},
		"on this machine, no key there is": {change: func(r *http.Request) { r.RemoteAddr = "127.0.0.1:40000" }, plain: 403, open: 403},
		"without a key that was made":      {key: key, made: true, plain: 403, open: 403},
		"with a key that was made":         {key: key, made: true, change: header("Authorization", "Bearer "+key), plain: 200, open: 200},
		"without the key":                  {key: key, plain: 403, open: 401},
		"with another key":                 {key: key, change: header("Authorization", "Bearer other"), plain: 403, open: 401},
		"with the key":                     {key: key, change: header("Authorization", "Bearer "+key), plain: 200, open: 200},
	} {
		for _, role := range []string{"system", "developer"} {
			body := `{"messages":[{"role":"user","content":"One"},{"role":"` + role + `","content":"Rhyme."},{"role":"user","content":"Two"}]}`
			for path, status := range map[string]int{"/v1/chat": tc.plain, "/v1/chat/completions": tc.open} {
				a := &fakeAgent{}
				s, _ := chatServer(t, a, func(o *Options) { o.Auth, o.GuardCompletions = operators(tc.key), tc.key != "" && !tc.made })
				w := send(s, path, body, tc.change)
				if w.Code != status {
					t.Errorf("%s, %s, %s: %d %s", name, path, role, w.Code, w.Body)
				}
				var want [][]textmodel.Message
				if status == http.StatusOK {
					want = [][]textmodel.Message{{{Role: textmodel.RoleUser, Text: "One"}, {Role: textmodel.RoleSystem, Text: "Rhyme."}}}
				}
				var got [][]textmodel.Message
				for _, req := range a.requests() {
					got = append(got, req.History)
				}
				if diff := cmp.Diff(want, got, messages); diff != "" {
					t.Errorf("%s, %s, %s: %s", name, path, role, diff)
				}
				if status == http.StatusForbidden {
					if code, message := problemOf(t, w); code != "system_message" || message == "" {
						t.Errorf("%s, %s: %s %q", name, path, code, message)
					}
				}
			}
		}
	}
}

package gateway

import (
	"net/http"
	"strings"
	"testing"
)

// TestATokenIsNeverRepeated: no answer and no log line contains the token of a confirmation, wherever a client puts it.
func TestATokenIsNeverRepeated(t *testing.T) {
	const token = "cf_SECRETSECRETSECRETSECRET"
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
	}{
		"as it should be":      {"POST", "/v1/confirmations", `{"token":"` + token + `","approved":true}`, 503},
		"no answer":            {"POST", "/v1/confirmations", `{"token":"` + token + `"}`, 400},
		"no token":             {"POST", "/v1/confirmations", `{"approved":true}`, 400},
		"an empty token":       {"POST", "/v1/confirmations", `{"token":"","approved":true}`, 400},
		"a token as a field":   {"POST", "/v1/confirmations", `{"` + token + `":true}`, 400},
		"a number as token":    {"POST", "/v1/confirmations", `{"token":1,"approved":true}`, 400},
		"a token alone":        {"POST", "/v1/confirmations", token, 400},
		"two answers":          {"POST", "/v1/confirmations", `{"token":"` + token + `","approved":true}{"approved":false}`, 400},
		"the old address":      {"POST", "/v1/confirmations/" + token, `{"approved":true}`, 410},
		"looked up there":      {"GET", "/v1/confirmations/" + token, ``, 410},
		"below it":             {"POST", "/v1/confirmations/x/" + token, ``, 410},
		"in a query":           {"POST", "/v1/confirmations?token=" + token, `{"approved":true}`, 400},
		"from no operator":     {"POST", "/v1/confirmations", `{"token":"` + token + `","approved":true}`, 401},
		"from none, unchanged": {"POST", "/v1/confirmations/" + token, `{"approved":true}`, 410},
	} {
		var log strings.Builder
		s := deskServer(t, &desk{}, func(o *Options) { o.Logger = logTo(&log) })
		w := operate(s, tc.method, tc.path, tc.body, func(r *http.Request) {
			if strings.HasPrefix(name, "from") {
				r.Header.Del("Authorization")
			}
		})
		if w.Code != tc.status || strings.Contains(w.Body.String()+log.String(), "SECRET") {
			t.Errorf("%s: %d %s\n%s", name, w.Code, w.Body, log.String())
		}
	}
}

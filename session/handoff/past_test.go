package handoff

import (
	"encoding/json"
	"testing"
)

// TestPastCallHasAnObject: a new connection gets an object as the arguments of a past call, whatever the model wrote,
// because a provider that checks its history refuses everything else.
func TestPastCallHasAnObject(t *testing.T) {
	for written, want := range map[string]string{
		``: `{}`, `""`: `{}`, `null`: `{}`, `[1]`: `{}`, `7`: `{}`, `{}{}`: `{}`, `{"a":`: `{}`, `{"a":1,"a":2}`: `{}`, `{"a":1e999}`: `{}`, "{\"a\":\"\xff\"}": `{}`,
		`{"a": "b"}`: `{"a": "b"}`, `{"a":"\ud800"}`: `{"a":"` + "\uFFFD" + `"}`,
	} {
		if got := pastArgs(json.RawMessage(written)); string(got) != want {
			t.Errorf("%q becomes %s, want %s", written, got, want)
		}
	}
}

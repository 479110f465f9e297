package session

import (
	"bytes"
	"testing"

	"voicegw/orchestrator/calls"
)

// TestSealedTokens: the token of a question can be read only in its own session, with each valid resume token.
func TestSealedTokens(t *testing.T) {
	asked := []calls.OpenQuestion{{Name: "n1", Token: "cf_secret"}, {Name: "n2", Token: "cf_other"}}
	all, err := sealed(asked, "voice-1", []sealKey{keyOf("new"), keyOf("next")})
	if err != nil || len(all) != 2 || bytes.Contains(bytes.Join(all, nil), []byte("cf_")) {
		t.Fatalf("sealed: %q, %v", all, err)
	}
	bare := []calls.OpenQuestion{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	for _, token := range []string{"new", "next"} {
		if got := unseal(bare, all, "voice-1", token); len(got) != 2 || got[0].Token != "cf_secret" || got[1].Token != "cf_other" {
			t.Errorf("with %s: %+v", token, got)
		}
	}
	broken := [][]byte{nil, {1}, append(bytes.Clone(all[0]), 0)}
	for name, got := range map[string][]calls.OpenQuestion{
		"an old token": unseal(bare, all, "voice-1", "old"), "another session": unseal(bare, all, "voice-2", "new"), "broken": unseal(bare, broken, "voice-1", "new"),
	} {
		if got != nil {
			t.Errorf("%s opens %+v", name, got)
		}
	}
}

package calls

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// keep stores an answer of size bytes under a key.
func keep(b *Book, key string, size int) {
	data := json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
	b.Keep(Stored{Keys: Keys{Idempotency: key}, Tool: "get", Envelope: registry.Envelope{OK: true, Data: data}, Turn: 1})
}

// kept are the keys of stored answers.
func kept(b Book) (keys []string) {
	for _, s := range b.stored {
		keys = append(keys, s.Keys.Idempotency)
	}
	return keys
}

// TestHundredAnswers: beyond the limit, the oldest answer is forgotten.
func TestHundredAnswers(t *testing.T) {
	b := NewBook(nil, &Policy{Mode: spec.ModeVoice})
	for i := range maxAnswers + 1 {
		keep(&b, fmt.Sprint(i), 4)
	}
	if len(b.stored) != maxAnswers || b.HasKey("0") || !b.HasKey("1") || !b.HasKey(fmt.Sprint(maxAnswers)) {
		t.Errorf("it stores %d answers: %v", len(b.stored), kept(b))
	}
}

func TestAnswersAreBoundedInBytes(t *testing.T) {
	b := NewBook(nil, &Policy{Mode: spec.ModeVoice})
	for _, key := range []string{"a", "b", "c", "d"} {
		keep(&b, key, maxAnswerBytes/4)
	}
	if len(b.stored) != 4 {
		t.Fatalf("within the limit it stores %v", kept(b))
	}
	keep(&b, "e", 10)
	if diff := cmp.Diff([]string{"b", "c", "d", "e"}, kept(b)); diff != "" {
		t.Error(diff)
	}
	keep(&b, "huge", 2*maxAnswerBytes) // a single one is always stored
	if diff := cmp.Diff([]string{"huge"}, kept(b)); diff != "" {
		t.Error(diff)
	}
}

// TestNothingBadIsKept: failures and answers stored elsewhere are not stored.
func TestNothingBadIsKept(t *testing.T) {
	b := NewBook(nil, &Policy{Mode: spec.ModeVoice})
	b.Keep(Stored{Envelope: registry.Envelope{Error: &registry.Error{}}})
	b.Keep(Stored{Envelope: registry.Envelope{OK: true, Meta: registry.Meta{CacheHit: true}}})
	if len(b.stored) != 0 {
		t.Errorf("it stores %+v", b.stored)
	}
}

func TestRefuseWithoutTools(t *testing.T) {
	b := NewBook(nil, &Policy{Mode: spec.ModeVoice})
	e := &registry.Error{Type: registry.ErrorRateLimit}
	if env := b.Refuse("time", e); env.Error != e || env.Meta.Tool != "time" {
		t.Errorf("refused: %+v", env)
	}
	b.Charge(nil, "time")
	if got := string(b.Usage()); got != string(Account{Total: 1}.Encode(b.Budget())) || b.tools != nil {
		t.Errorf("charged: %s", got)
	}
}

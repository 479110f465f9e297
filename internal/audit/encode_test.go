package audit

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/cost"
	"voicegw/registry"
	"voicegw/registry/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fullRecord has every field.
func fullRecord() Record {
	return Record{
		Event: EventTool, Time: time.Date(2026, 11, 20, 11, 0, 0, 120_999_999, time.FixedZone("", 3600)),
		ToolID: "kb_search", ToolVersion: "1.2.0", ToolVariant: "kb_search_next", RegistryVersion: "1.0.0a1b2c3d", Category: spec.CategoryRetrieval, Mode: spec.ModeVoice,
		Channel: "mcp", SessionID: "voice-q3kd7hz2", UserID: "ada", ConversationID: "conv-7", Agent: "default", AgentVersion: "5f2c9a1e", From: "reception", TurnID: 4,
		ToolCall:   ToolCall{CallID: "call-9", ParentCallID: "call_1", ProviderCallID: "call_Xy12", IdempotencyKey: "provider:call_Xy12", Executor: "client", BusinessKey: "9f86d081884c7d65"},
		DurationMS: 84, OK: true, ErrorType: registry.ErrorTransient, PartialSideEffects: true,
		Budget:   json.RawMessage(`{"retrieval":{"used":1,"limit":2},"total":{"used":2,"limit":3},"tool_time_ms":{"used":84,"limit":1500}}`),
		Clamped:  map[string]registry.Clamped{"top_k": {Requested: "10", Applied: 3}},
		CacheHit: true, OriginalTurn: 3,
		Approval: Approval{Confirmation: "approved", ConfirmedBy: "client", Reference: "c-1"},
		Intents:  []registry.IntentType{registry.IntentEndVoiceSession}, Refused: []registry.IntentType{registry.IntentSuppressAudio},
		Why: "the session ends", Evidence: []string{"person:ada_l", "doc:lab"}, ToolNote: ToolNote{Note: "order.picked", NoteData: json.RawMessage(`{"parts":3}`)}, Job: "job-k3v9x2abq7m4t6wz",
		Statement: Statement{Claim: "book", Check: "slurs",
			Sentence: Sentence{Spoken: "exact", Words: "b5bb9d8014a0f9b1", HeardMS: 2300, LengthMS: 2300, Tries: 1}},
		Delivered: true, NotDelivered: "superseded", Again: true,
		Usage: Usage{Spent: &cost.Sum{
			Amount: cost.Amount{Micros: 41370, Unpriced: 1}, Sessions: 1, Turns: 3, VoiceMS: 64000,
			Tokens: cost.Usage{InputText: 1, InputAudio: 2, InputImage: 3, CachedText: 4, CachedAudio: 5, CachedImage: 6, OutputText: 7, OutputAudio: 8},
		}, Prices: "2026-11-25", KeyID: "key:4f9a01bc"},
		Args: json.RawMessage("{\"query\": \"<tea> & \u2028biscuits\",\n\"top_k\": 3}"),
	}
}

// TestRecordFormIsStable: readers of the audit depend on its form. A change of these files changes the contract, and
// docs/audit.md.
func TestRecordFormIsStable(t *testing.T) {
	for name, r := range map[string]Record{
		"full": fullRecord(),
		"minimal": {Event: EventTool, Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), ToolID: "kb_get",
			Mode: spec.ModeText, SessionID: "s-1"},
	} {
		line := encode(&r, ArgumentsFull)
		file := filepath.Join("testdata", name+".jsonl")
		if *update {
			if err := os.WriteFile(file, line, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(line)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		plain, err := json.Marshal(r)
		if err != nil || !json.Valid(plain) || !bytes.Contains(plain, []byte(`00:00.`)) {
			t.Errorf("%s: json.Marshal returns %s, %v", name, plain, err)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Record]()) {
		if f.Tag.Get("json") != "-" && reflect.ValueOf(fullRecord()).FieldByIndex(f.Index).IsZero() {
			t.Errorf("the full record lacks %s", f.Name)
		}
	}
}

// TestRecordRoundTrip: a record is the same after writing and reading, except for the time below 1 ms.
func TestRecordRoundTrip(t *testing.T) {
	r := fullRecord()
	got, err := ParseLine(encode(&r, ArgumentsFull))
	if err != nil {
		t.Fatal(err)
	}
	want := fullRecord()
	want.Time = time.Date(2026, 11, 20, 10, 0, 0, 120_000_000, time.UTC)
	want.Args = json.RawMessage(`{"query":"<tea> & ` + "\u2028" + `biscuits","top_k":3}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLineIsAlwaysWritten: any record becomes a valid line of limited length.
func TestLineIsAlwaysWritten(t *testing.T) {
	evil := strings.Repeat("\x01\x01\x01\x01\x01\x01\x01\xff\n\"", 8_000)
	intents := make([]registry.IntentType, 500)
	for i := range intents {
		intents[i] = registry.IntentType(evil)
	}
	worst := Record{
		Event: Event(evil), Time: time.Now(), ToolID: evil, ToolVersion: evil, ToolVariant: evil, RegistryVersion: evil, Category: spec.Category(evil), Mode: spec.Mode(evil),
		SessionID: evil, UserID: evil, ConversationID: evil, Agent: evil, AgentVersion: evil, From: evil, ToolCall: ToolCall{CallID: evil, ParentCallID: evil, ProviderCallID: evil, IdempotencyKey: evil, BusinessKey: evil},
		ErrorType: registry.ErrorType(evil), Approval: Approval{Confirmation: evil, ConfirmedBy: evil, Reference: evil}, Intents: intents, Refused: intents, Why: evil, NotDelivered: evil, Evidence: slices.Repeat([]string{evil}, 500), Usage: Usage{Prices: evil, KeyID: evil}, ToolNote: ToolNote{Note: evil, NoteData: json.RawMessage("{broken")}, Job: evil,
		Budget: json.RawMessage("{broken"), Args: json.RawMessage("{broken"), Clamped: map[string]registry.Clamped{},
	}
	for i := range 500 {
		worst.Clamped[fmt.Sprint(i, evil)] = registry.Clamped{Requested: json.Number(evil)}
	}
	cases := map[string]Record{
		"everything": worst,
		"a number":   {Event: EventTool, Clamped: map[string]registry.Clamped{"top_k": {Requested: "ten", Applied: 3}}},
		"no number":  {Event: EventTool, Clamped: map[string]registry.Clamped{"top_k": {Requested: "-", Applied: 3}}},
		"a budget":   {Event: EventTool, Budget: json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)},
		"arguments":  {Event: EventTool, Args: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)},
	}
	for name, r := range cases {
		r.Time = time.Now()
		for _, a := range []Arguments{ArgumentsNone, ArgumentsRedacted, ArgumentsFull} {
			line := encode(&r, a)
			if len(line) > MaxLine || bytes.Count(line, []byte{'\n'}) != 1 || line[len(line)-1] != '\n' {
				t.Errorf("%s, %s: a line of %d bytes, %.80s", name, a, len(line), line)
			}
			got, err := ParseLine(line)
			if err != nil {
				t.Errorf("%s, %s: %v: %.200s", name, a, err, line)
			}
			if name == "everything" && (got.ToolID == "" || got.SessionID == "") {
				t.Errorf("%s, %s: the tool or the session is lost: %.200s", name, a, line)
			}
		}
	}
}

// TestNoTokenInALine: a model may write a confirmation's token into an argument.
func TestNoTokenInALine(t *testing.T) {
	const token = "cf_VNCCPXXF6QYIG3JBALZZ3SNRKJ"
	line := encode(&Record{Event: EventTool, Time: time.Now(), ToolID: "pay", Why: token, Args: json.RawMessage(`{"to":"` + token + `"}`)}, ArgumentsFull)
	if strings.Contains(string(line), token) || !json.Valid(line) || !strings.Contains(string(line), `"to":"[redacted]"`) {
		t.Errorf("%s", line)
	}
}

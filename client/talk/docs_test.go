package talk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// examples are the JSON blocks of a page.
var examples = regexp.MustCompile("(?s)```json\n(.*?)```")

// TestProtocolPageExamples: both sides know every message in docs/protocol.md and all its fields.
func TestProtocolPageExamples(t *testing.T) {
	checkPage(t, "protocol.md", "tool.progress", "tool.ended", "confirmation.request", "confirmation.resolve", "confirmation.ended", "timeout", "error")
}

// TestTextPageExamples covers the pages about text and the handoff to voice.
func TestTextPageExamples(t *testing.T) {
	checkPage(t, "chat.md", "text.delta", "text.done", "tool.started", "tool.progress", "tool.ended", "confirmation.request", "confirmation.ended",
		"voice_session_start", "timeout", "error", "usage", "done")
	checkPage(t, "handoff.md", "voice_session_start", "session.ended")
}

// checkPage checks all examples of a page, which must include these types.
func checkPage(t *testing.T, name string, types ...string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, block := range examples.FindAllSubmatch(page, -1) {
		for d := json.NewDecoder(bytes.NewReader(block[1])); ; {
			var example json.RawMessage
			err := d.Decode(&example)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, block[1])
			}
			if name := checkExample(t, example); name != "" {
				seen[name]++
			}
		}
	}
	for _, typ := range types {
		if seen[typ] == 0 {
			t.Errorf("docs/%s has no example of %s", name, typ)
		}
	}
}

// checkExample parses and encodes a message without a loss. It returns the type, or empty if it is not a message.
func checkExample(t *testing.T, example json.RawMessage) string {
	t.Helper()
	var head struct {
		Type string
		Seq  int64
	}
	if err := json.Unmarshal(example, &head); err != nil || head.Type == "" {
		return ""
	}
	again, err := reencode(example, head.Seq)
	if err != nil {
		t.Errorf("%v\n%s", err, example)
		return head.Type
	}
	var want, got map[string]any
	if err := json.Unmarshal(example, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example differs from the encoded message (-page +code):\n%s", diff)
	}
	return head.Type
}

func reencode(example []byte, seq int64) ([]byte, error) {
	if seq == 0 {
		m, err := protocol.ParseClient(example)
		if err != nil {
			return nil, err
		}
		return protocol.EncodeClient(m)
	}
	m, err := protocol.ParseServer(example)
	if err != nil {
		return nil, err
	}
	if _, unknown := m.(*protocol.Unknown); unknown {
		return nil, errors.New("no such message")
	}
	return protocol.EncodeServer(seq, m)
}

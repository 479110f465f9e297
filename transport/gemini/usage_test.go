package gemini

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// usageOf adds up and lists the Usage events of messages.
func usageOf(t *testing.T, model string, messages ...string) []transport.Tokens {
	t.Helper()
	c := offline(t, model)
	var got []transport.Tokens
	for _, msg := range messages {
		if err := c.decode(&frame{raw: []byte(msg)}); err != nil {
			t.Fatal(err)
		}
		for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
			if u, ok := ev.(transport.Usage); ok {
				got = append(got, u.Tokens)
			}
		}
	}
	return got
}

func TestUsageOncePerTurn(t *testing.T) {
	report := `{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"responseTokenCount":30,"thoughtsTokenCount":5,"toolUsePromptTokenCount":7,
		"promptTokensDetails":[{"modality":"TEXT","tokenCount":60},{"modality":"AUDIO","tokenCount":30},{"modality":"IMAGE","tokenCount":10}],
		"cacheTokensDetails":[{"modality":"TEXT","tokenCount":35},{"modality":"AUDIO","tokenCount":5}],
		"responseTokensDetails":[{"modality":"AUDIO","tokenCount":28},{"modality":"TEXT","tokenCount":2}]}}`
	want := transport.Tokens{
		Input: 107, Output: 30, InputText: 60, InputAudio: 30, InputOther: 10,
		CachedText: 35, CachedAudio: 5, OutputText: 2, OutputAudio: 28, OutputThought: 5,
	}
	got := usageOf(t, model25, speech, report, speech, report, `{"usageMetadata":{}}`)
	if diff := cmp.Diff([]transport.Tokens{want, want}, got); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}

func TestUsageOfARunningTurnIsMadeIntoDeltas(t *testing.T) {
	got := usageOf(t, model31,
		`{"serverContent":{},"usageMetadata":{"promptTokenCount":400,"promptTokensDetails":[{"modality":"TEXT","tokenCount":400}]}}`,
		`{"toolCall":{"functionCalls":[{"id":"a","name":"f"}]},"usageMetadata":{"promptTokenCount":400,"responseTokenCount":12,"promptTokensDetails":[{"modality":"TEXT","tokenCount":400}],"responseTokensDetails":[{"modality":"TEXT","tokenCount":12}]}}`,
		speech,
		`{"usageMetadata":{}}`,
		`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":482,"responseTokenCount":69,"promptTokensDetails":[{"modality":"TEXT","tokenCount":482}],"responseTokensDetails":[{"modality":"TEXT","tokenCount":12},{"modality":"AUDIO","tokenCount":57}]}}`,
		// The next turn counts from zero.
		`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":500}}`,
	)
	want := []transport.Tokens{
		{Input: 400, InputText: 400},
		{Output: 12, OutputText: 12},
		{Input: 82, InputText: 82, Output: 57, OutputAudio: 57},
		{Input: 500},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}

func TestUsageOfVertex(t *testing.T) {
	got := usageOf(t, model25, `{"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":50,"candidatesTokenCount":20,
		"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":20}]}}`)
	want := []transport.Tokens{{Input: 10, InputText: 10, CachedText: 10, Output: 20, OutputAudio: 20}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage differs (-want +got):\n%s", diff)
	}
}

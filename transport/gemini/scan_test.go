package gemini

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// messageAsJSON is the part of a message that scanAudio reads, for encoding/json.
type messageAsJSON struct {
	ServerContent struct {
		ModelTurn struct {
			Parts []struct {
				InlineData struct{ MIMEType, Data string }
			}
		}
		OutputTranscription *struct{ Text string }
	}
}

// FuzzScanAudio: in valid JSON the scanner finds the same values as encoding/json, and it never panics.
func FuzzScanAudio(f *testing.F) {
	for _, seed := range []string{
		speech, audioMessage([]byte{1, 2}, "hi"), strings.ReplaceAll(speech, ":", " :\n "),
		`{"serverContent":{"outputTranscription":{"text":"é"},"modelTurn":{"role":"model","parts":[{"inlineData":{"data":"","mimeType":"audio/pcm"}}]}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AA","data":"BB","mimeType":"audio/pcm"}}]}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AA","mimeType":"audio/pcm"}},{}]}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"A\u003d","mimeType":"audio/pcm"}}]},"outputTranscription":{"text":"\""}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AA","mimeType":"audio/pcm"}}],"parts":[{"inlineData":{"data":"BB","mimeType":"audio/pcm"}}]}}}`,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AA","mimeType":"audio/pcm"}}]},"modelTurn":{"role":"model"}}}`,
		strings.Replace(audioMessage([]byte{1, 2}, "hi"), "hi", "\xff\xfe", 1),
		`{"serverContent":{"modelTurn":{"parts":[]}}} x`, `{"serverContent":{}}`, `{`, ``,
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AA","mimeType":"audio/pcm"}}]},"turnComplete":true}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		var s scanner
		ok := s.scanAudio(msg)
		got := s.out
		if !ok || !json.Valid(msg) || bytes.ContainsAny(got.data, `\"`) || !utf8.Valid(got.data) || plainRate(got.mime) == 0 {
			return // the slow path decides
		}
		var want messageAsJSON
		if err := json.Unmarshal(msg, &want); err != nil {
			t.Fatalf("scanned JSON that encoding/json refuses: %v", err)
		}
		parts := want.ServerContent.ModelTurn.Parts
		if len(parts) != 1 || parts[0].InlineData.MIMEType != string(got.mime) || parts[0].InlineData.Data != string(got.data) {
			t.Errorf("scanned %q %q from %s", got.mime, got.data, msg)
		}
		tr := want.ServerContent.OutputTranscription
		if got.hasText != (tr != nil) || tr != nil && tr.Text != string(got.text) {
			t.Errorf("scanned the text %q from %s", got.text, msg)
		}
	})
}

// FuzzDecode: the whole decoder must not panic on two messages, and after the turn it has ended as many responses and
// items as it began.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		speech, generated, turnOver, interrupted, said("a"), heard("b"), called("x", "f"), `{"toolCallCancellation":{"ids":["x"]}}`,
		`{"goAway":{"timeLeft":"1s"}}`, `{"usageMetadata":{"promptTokenCount":-5}}`, `{"voiceActivity":{"voiceActivityType":"ACTIVITY_START"}}`,
		`{"sessionResumptionUpdate":{"newHandle":"h"}}`, `{"error":{"code":1}}`, `{"setupComplete":{"sessionId":"s"}}`,
		`{"serverContent":{"modelTurn":{"parts":[null,{"inlineData":null},{"functionCall":{}}]},"turnCompleteReason":"X"}}`,
	} {
		f.Add([]byte(seed), []byte(turnOver))
		f.Add([]byte(interrupted), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		c := offline(t, model31)
		lines := feed(t, c, string(one), string(two))
		c.dialog.giveUp()
		for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
			lines = append(lines, line(ev))
		}
		count := map[string]int{}
		for _, l := range lines {
			count[strings.Fields(l)[0]]++
		}
		if count["ResponseStarted"] != count["ResponseDone"] {
			t.Errorf("unbalanced responses: %q", lines)
		}
		if count["AudioOut"] == 0 && count["AudioDone"] > 0 {
			t.Errorf("the end of audio that never was: %q", lines)
		}
	})
}

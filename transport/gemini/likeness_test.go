package gemini

import (
	"encoding/json"
	"strings"
	"testing"
)

// spoken is a message with audio in the form of 2.5 models.
func spoken(data string) string {
	return "{\n  \"serverContent\": {\n    \"modelTurn\": {\n      \"parts\": [\n        {\n          \"inlineData\": {\n" +
		"            \"mimeType\": \"audio/pcm;rate=24000\",\n            \"data\": \"" + data + "\"\n          }\n        }\n      ]\n    }\n  }\n}\n"
}

// TestLikenessAgreesWithTheScanner: after one message, others of its shape and any length give the same audio without
// a scan, and messages of another shape are not mistaken for one.
func TestLikenessAgreesWithTheScanner(t *testing.T) {
	var s scanner
	var l likeness
	if _, ok := l.match([]byte(spoken("AAAA"))); ok {
		t.Fatal("the zero value is like something")
	}
	first := []byte(spoken("AAAABBBB"))
	if !s.scanAudio(first) {
		t.Fatal("the first message was not read")
	}
	l.learn(first, s.out.data)
	for _, data := range []string{"", "AAAA", strings.Repeat("CCCC", 900)} {
		got, ok := l.match([]byte(spoken(data)))
		if !ok || string(got) != data {
			t.Errorf("%d characters of audio: %d, %t", len(data), len(got), ok)
		}
	}
	for _, other := range []string{
		`{"serverContent":{"turnComplete":true}}`, strings.TrimSpace(spoken("AAAA")), spoken("AAAA") + " ",
		strings.Replace(spoken("AAAA"), "24000", "16000", 1), spoken("AAAA")[:40], "",
	} {
		if _, ok := l.match([]byte(other)); ok {
			t.Errorf("%q is mistaken for audio of the same shape", other)
		}
	}
}

// FuzzLikeness: audio found by match and accepted by the decoder is the audio found by encoding/json.
func FuzzLikeness(f *testing.F) {
	f.Add("AAAA")
	f.Add("AAAA\"},\"x\":{\"data\":\"BBBB")
	f.Add("AA\\u0041A")
	f.Fuzz(func(t *testing.T, data string) {
		var s scanner
		var l likeness
		first := []byte(spoken("AAAA"))
		s.scanAudio(first)
		l.learn(first, s.out.data)
		msg := []byte(spoken(data))
		got, ok := l.match(msg)
		if !ok {
			t.Fatal("the same shape was not recognised")
		}
		c := &conn{}
		if _, ok := c.decodeAudio(nil, got); !ok {
			return
		}
		var m messageAsJSON
		if err := json.Unmarshal(msg, &m); err != nil {
			t.Fatalf("audio was read from invalid JSON: %v", err)
		}
	})
}

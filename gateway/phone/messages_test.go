package phone

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
)

// TestSignature checks the example in Twilio's documentation.
func TestSignature(t *testing.T) {
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"},
		"From": {"+14158675309"}, "To": {"+18005551212"}}
	const at = "https://mycompany.com/myapp.php?foo=1&bar=2"
	sign := Sign("12345", at, form)
	if sign != "RSOYDt4T1cUTdK1PDd93/VVr8B8=" {
		t.Errorf("signed %s", sign)
	}
	for name, tc := range map[string]struct {
		sign, token, at string
		ok              bool
	}{
		"as signed":       {sign, "12345", at, true},
		"another token":   {sign, "12346", at, false},
		"another address": {sign, "12345", at + "3", false},
		"no signature":    {"", "12345", at, false},
		"no token":        {Sign("", at, form), "", at, false},
	} {
		if got := Signed(tc.sign, tc.token, tc.at, form); got != tc.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
	form.Set("Digits", "1235")
	if Signed(sign, "12345", at, form) {
		t.Error("a changed field is accepted")
	}
}

// messages are examples from Twilio's documentation.
var messages = []string{
	`{"event":"connected","protocol":"Call","version":"1.0.0"}`,
	`{"event":"start","sequenceNumber":"1","streamSid":"MZ1","start":{"accountSid":"AC1","callSid":"CA1","streamSid":"MZ1",` +
		`"tracks":["inbound"],"customParameters":{"ticket":"t"},` +
		`"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1}}}`,
	`{"event":"media","sequenceNumber":"4","streamSid":"MZ1","media":{"track":"inbound","chunk":"2","timestamp":"5","payload":"AAD/"}}`,
	`{"event":"dtmf","sequenceNumber":"5","streamSid":"MZ1","dtmf":{"track":"inbound_track","digit":"1"}}`,
	`{"event":"mark","sequenceNumber":"4","streamSid":"MZ1","mark":{"name":"1:200"}}`,
	`{"event":"stop","sequenceNumber":"5","streamSid":"MZ1","stop":{"accountSid":"AC1","callSid":"CA1"}}`,
	`{"event":"clear","streamSid":"MZ1"}`,
}

func TestMessages(t *testing.T) {
	for _, text := range messages {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(again)); diff != "" {
			t.Error(diff)
		}
	}
	for name, tc := range map[string]struct{ text, word string }{
		"no JSON":       {`hello`, "not a JSON object"},
		"no event":      {`{}`, "no event"},
		"no object":     {`{"event":"start"}`, "no object start"},
		"two keys":      {`{"event":"dtmf","dtmf":{"digit":"12"}}`, "0 to 9"},
		"no mark":       {`{"event":"mark"}`, "no object mark"},
		"long mark":     {`{"event":"mark","mark":{"name":"` + strings.Repeat("x", MaxName+1) + `"}}`, "longer"},
		"long audio":    {`{"event":"media","media":{"payload":"` + strings.Repeat("AAAA", MaxPayload/3+2) + `"}}`, "500 ms"},
		"long message":  {`{"event":"` + strings.Repeat("x", MaxMessage) + `"}`, "bytes"},
		"number as sid": {`{"event":"mark","streamSid":1}`, "not a JSON object"},
	} {
		if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMedia: audio is encoded and decoded without an allocation.
func TestMedia(t *testing.T) {
	ulaw := bytes.Repeat([]byte{0, 0xFF, 0x7F, 0x80}, FrameSamples/4)
	stream := []byte("MZ1")
	head := inStream(dialects[Twilio].media, "MZ1")
	sent := AppendMedia(nil, head, ulaw)
	m, err := Parse(sent)
	if err != nil || m.StreamSID != "MZ1" || m.Media.Payload != base64.StdEncoding.EncodeToString(ulaw) {
		t.Fatalf("%+v, %v", m, err)
	}
	media := []byte(strings.Replace(messages[2], "AAD/", base64.StdEncoding.EncodeToString(ulaw), 1))
	got, ok := AppendPayload(nil, media, stream)
	if !ok || !bytes.Equal(got, ulaw) {
		t.Errorf("%v %d bytes", ok, len(got))
	}
	for name, text := range map[string]string{
		"another stream": strings.Replace(string(media), "MZ1", "MZ2", 1),
		"other track":    strings.Replace(string(media), `"inbound"`, `"outbound"`, 1),
		"no base64":      strings.Replace(messages[2], "AAD/", "AA*/", 1),
		"another event":  messages[4],
		"cut":            string(media[:len(media)-4]),
	} {
		if _, ok := AppendPayload(nil, []byte(text), stream); ok {
			t.Errorf("%s is accepted", name)
		}
	}
	var pcm, line []byte
	if n := testing.AllocsPerRun(100, func() {
		got, _ = AppendPayload(got[:0], media, stream)
		pcm = audio.AppendFromULaw(pcm[:0], got)
		line = AppendMedia(line[:0], head, audio.AppendULaw(got[:0], pcm))
	}); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

// FuzzParse: both parsers agree on each valid message, which survives encoding.
func FuzzParse(f *testing.F) {
	for _, text := range messages {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, fast := AppendPayload(nil, data, []byte("MZ1"))
		m, err := Parse(data)
		if err != nil {
			return
		}
		if fast && len(payload) > MaxPayload+2 {
			t.Errorf("%d bytes of audio", len(payload))
		}
		text, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil && len(text) <= MaxMessage {
			t.Fatalf("%s: %v", text, err)
		}
		if err == nil && again.Event != m.Event {
			t.Errorf("%q became %q", m.Event, again.Event)
		}
	})
}

package openai

import (
	"strings"
	"testing"

	"voicegw/transport"
)

// TestAnnouncedRates: the connection has the audio rates of session.updated, in today's form and in the beta's. An
// unusable rate is a clear error.
func TestAnnouncedRates(t *testing.T) {
	for name, c := range map[string]struct {
		session string
		in, out int // zero: the setup fails
	}{
		"nothing":              {`{}`, 24000, 24000},
		"ours":                 {`{"audio":{"input":{"format":{"type":"audio/pcm","rate":24000}},"output":{"format":{"type":"audio/pcm","rate":24000}}}}`, 24000, 24000},
		"speech at 16 kHz":     {`{"audio":{"output":{"format":{"type":"audio/pcm","rate":16000}}}}`, 24000, 16000},
		"both at 16 kHz":       {`{"audio":{"input":{"format":{"type":"audio/pcm","rate":16000}},"output":{"format":{"type":"audio/pcm","rate":16000}}}}`, 16000, 16000},
		"22.05 and 44.1 kHz":   {`{"audio":{"input":{"format":{"type":"audio/pcm","rate":22050}},"output":{"format":{"type":"audio/pcm","rate":44100}}}}`, 22050, 44100},
		"a rate in quotes":     {`{"audio":{"output":{"format":{"type":"audio/pcm","rate":"16000"}}}}`, 24000, 16000},
		"no rate":              {`{"audio":{"output":{"format":{"type":"audio/pcm"}}}}`, 24000, 24000},
		"null":                 {`{"audio":{"output":{"format":null}}}`, 24000, 24000},
		"the beta's form":      {`{"input_audio_format":"pcm16","output_audio_format":"pcm16"}`, 24000, 24000},
		"the beta's telephone": {`{"input_audio_format":"pcm16","output_audio_format":"g711_ulaw"}`, 0, 0},
		"a telephone":          {`{"audio":{"output":{"format":{"type":"audio/pcmu"}}}}`, 0, 0},
		"zero":                 {`{"audio":{"output":{"format":{"type":"audio/pcm","rate":0}}}}`, 0, 0},
		"a negative rate":      {`{"audio":{"output":{"format":{"type":"audio/pcm","rate":-24000}}}}`, 0, 0},
		"a rate too high":      {`{"audio":{"input":{"format":{"type":"audio/pcm","rate":1000000}}}}`, 0, 0},
		"an invalid rate":      {`{"audio":{"output":{"format":{"type":"audio/pcm","rate":"fast"}}}}`, 0, 0},
		"a list":               {`{"audio":{"output":{"format":["audio/pcm"]}}}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.greet = func(p *peer) {
				p.send(`{"type":"session.created","session":{"id":"s"}}`)
				p.expect("session.update")
				p.send(`{"type":"session.updated","session":%s}`, c.session)
			}
			if c.in == 0 {
				if err := s.connectError(transport.Setup{}); err.Kind != transport.KindInvalid || err.Code != "audio_format" || !strings.Contains(err.Error(), "audio/pcm at 8000 to 192000 Hz") {
					t.Errorf("the setup ended with %v", err)
				}
				return
			}
			conn, _ := s.connect(transport.Setup{})
			if info := conn.Info(); info.InputRate != c.in || info.OutputRate != c.out {
				t.Errorf("the rates are %d and %d, want %d and %d", info.InputRate, info.OutputRate, c.in, c.out)
			}
		})
	}
}

// TestAnotherRateLater: a later session.updated changes the rate of the model's speech, and truncation counts the audio
// at that rate. Another input rate ends the connection, so that the next one begins with it.
func TestAnotherRateLater(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.send(`{"type":"session.updated","session":{"audio":{"output":{"format":{"type":"audio/pcm","rate":16000}}}}}`)
	p.Begin()
	p.Say("", make([]byte, 32000)) // a second
	recvAs[transport.ResponseStarted](t, conn)
	out := recvAs[*transport.AudioOut](t, conn)
	if out.Rate != 16000 {
		t.Errorf("the audio arrived at %d Hz", out.Rate)
	}
	send(t, conn, transport.Truncate{Item: out.Item, AudioMS: 5000})
	if m := p.expect("conversation.item.truncate"); m["audio_end_ms"] != 1000.0 {
		t.Errorf("truncation past the end: %v, want 1000 ms", m)
	}
	p.send(`{"type":"session.updated","session":{"audio":{"input":{"format":{"type":"audio/pcm","rate":8000}}}}}`)
	if err := recvError(t, conn); err.Kind != transport.KindRetry || !strings.Contains(err.Error(), "8000 Hz") {
		t.Errorf("the connection ended with %v", err)
	}
}

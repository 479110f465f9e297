package openai

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// TestUnusualAudio: valid audio events in another form than the provider's take the typed path and give the same result.
func TestUnusualAudio(t *testing.T) {
	pcm := make([]byte, 960)
	for i := range pcm {
		pcm[i] = byte(i * 7)
	}
	b64 := base64.StdEncoding.EncodeToString(pcm)
	for name, tt := range map[string]struct {
		frame string
		slow  int64
	}{
		"plain":                 {`{"type":"response.output_audio.delta","item_id":"item_1","response_id":"r","delta":"` + b64 + `"}`, 0},
		"beta name":             {`{"type":"response.audio.delta","item_id":"item_1","response_id":"r","delta":"` + b64 + `"}`, 0},
		"URL alphabet":          {`{"type":"response.output_audio.delta","item_id":"item_1","delta":"` + base64.RawURLEncoding.EncodeToString(pcm) + `"}`, 0},
		"escaped slashes":       {`{"type":"response.output_audio.delta","item_id":"item_1","delta":"` + strings.ReplaceAll(b64, "/", `\/`) + `"}`, 1},
		"escaped id":            {`{"type":"response.output_audio.delta","item_id":"item\u005f1","delta":"` + b64 + `"}`, 1},
		"nested member":         {`{"x":{"delta":"AAAA"},"type":"response.output_audio.delta","item_id":"item_1","delta":"` + b64 + `"}`, 1},
		"white space, reversed": {"{ \"delta\" : \"" + b64 + "\" ,\n\"item_id\":\"item_1\",\"type\":\"response.output_audio.delta\" }\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			conn, p := s.connect(transport.Setup{})
			for range 3 {
				p.send("%s", tt.frame)
				out := recvAs[*transport.AudioOut](t, conn)
				if out.Item != "item_1" || !cmp.Equal(out.PCM, pcm) {
					t.Errorf("item %q, %d bytes", out.Item, len(out.PCM))
				}
			}
			if st := conn.Stats(); st.SlowPath != 3*tt.slow || st.MalformedEvents != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// TestHalfSamples: a sample that is cut in two arrives complete, and a half sample at the end of an item is dropped.
func TestHalfSamples(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	p.Begin()
	p.Say("", []byte{1, 2, 3})
	p.Say("", []byte{4})
	p.Say("", []byte{5, 6, 7})
	p.Finish()
	var got []byte
	for {
		ev := recv(t, conn)
		if out, ok := ev.(*transport.AudioOut); ok {
			if len(out.PCM) == 0 || len(out.PCM)%2 != 0 {
				t.Errorf("%d bytes", len(out.PCM))
			}
			got = append(got, out.PCM...)
		}
		if _, ok := ev.(transport.ResponseDone); ok {
			break
		}
	}
	if diff := cmp.Diff([]byte{1, 2, 3, 4, 5, 6}, got); diff != "" {
		t.Error(diff)
	}
}

// TestBigAudio: pieces larger than the pooled buffer, in both directions.
func TestBigAudio(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	pcm := make([]byte, maxAppend+4800)
	for i := range pcm {
		pcm[i] = byte(i * 13)
	}
	sent := make(chan error, 1) // from the sender, once
	go func() { sent <- conn.Send(context.Background(), &transport.AudioIn{PCM: pcm}) }()
	got := append(p.NextAudio(), p.NextAudio()...)
	if err := <-sent; err != nil || !bytes.Equal(got, pcm) {
		t.Errorf("%d of %d bytes, %v", len(got), len(pcm), err)
	}
	p.Begin()
	go p.Say("", pcm)
	if out := recvAs[*transport.AudioOut](t, conn); !bytes.Equal(out.PCM, pcm) {
		t.Errorf("%d of %d bytes arrived", len(out.PCM), len(pcm))
	}
}

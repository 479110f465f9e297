package protocol

import (
	"bytes"
	"testing"
)

// TestWhatWasKeptMayComeAtOnce: a client that was without a network for two minutes sends all
// that it has kept: 20 ms of audio a frame at the highest rate, reports and pings.
func TestWhatWasKeptMayComeAtOnce(t *testing.T) {
	client, server := pair(t)
	const frames = 2 * 60 * 50
	go func() {
		for i := range frames {
			client.WriteAudio(bytes.Repeat([]byte{byte(i)}, 1920))
			if i%10 == 0 {
				client.WriteText([]byte(`{"type":"playback","item_id":"a","played_ms":1}`))
			}
		}
	}()
	for i := range frames + frames/10 {
		if _, err := server.Read(); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
}

// TestMoreIsAFlood: frames without end are read no more.
func TestMoreIsAFlood(t *testing.T) {
	client, server := pair(t)
	go func() {
		for client.WriteAudio([]byte{1, 2}) == nil {
		}
	}()
	var err error
	for err == nil {
		_, err = server.Read()
	}
	if !Flooded(err) || TooBig(err) {
		t.Error("the flood ended with", err)
	}
	server.Abort()
}

package protocol

import (
	"bytes"
	"testing"
)

// TestOutageIsNoFlood: after two minutes without a network a client may send its recording at once: frames of 20 ms at
// the highest rate, reports and pings.
func TestOutageIsNoFlood(t *testing.T) {
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

// TestMoreIsAFlood: the gateway stops reading if a client keeps sending frames.
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

package openai

import (
	"context"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// TestCrammedFrameEndsTheConnection: a frame with more than maxEvents ends the connection.
func TestCrammedFrameEndsTheConnection(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	var calls strings.Builder
	for i := range 5000 {
		if i > 0 {
			calls.WriteByte(',')
		}
		calls.WriteString(`{"id":"i` + strings.Repeat("x", i%50) + `","type":"function_call","status":"completed","call_id":"c` + strings.Repeat("y", i/50) + `","name":"f","arguments":"{}"}`)
	}
	sent := make(chan struct{}) // closed when the write has ended in any way
	go func() {
		defer close(sent)
		_ = p.ws.Write(context.Background(), websocket.MessageText,
			[]byte(`{"type":"response.done","event_id":"e","response":{"id":"r","status":"completed","output":[`+calls.String()+`]}}`))
	}()
	if err := recvError(t, conn); err.Kind != transport.KindRetry || err.Code != "too_many_events" {
		t.Errorf("%v", err)
	}
	_ = p.ws.CloseNow()
	<-sent
}

// TestFloodOfTheProviderEndsTheConnection: the error has a kind and can be retried.
func TestFloodOfTheProviderEndsTheConnection(t *testing.T) {
	s := newServer(t)
	conn, p := s.connect(transport.Setup{})
	sent := make(chan struct{}) // closed when writing fails
	go func() {
		defer close(sent)
		for p.ws.Write(context.Background(), websocket.MessageText, []byte(`{"type":"rate_limits.updated"}`)) == nil {
		}
	}()
	if err := recvError(t, conn); err.Kind != transport.KindRetry || err.Code != "flood" {
		t.Errorf("%v", err)
	}
	<-sent
}

package gemini

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// TestCrammedMessageEndsTheConnection: a message with more than maxEvents gives those, and then the connection has ended.
func TestCrammedMessageEndsTheConnection(t *testing.T) {
	p := newProvider(t)
	c, peer := p.connect(transport.Setup{})
	calls := strings.TrimSuffix(strings.Repeat(`{"id":"x","name":"f","args":{}},`, 5000), ",")
	sent := make(chan struct{}) // closed when the write has ended in any way
	go func() {
		defer close(sent)
		_ = peer.ws.Write(context.Background(), websocket.MessageBinary, []byte(`{"toolCall":{"functionCalls":[`+calls+`]}}`))
	}()
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = c.Recv(context.Background())
	}
	var e *transport.Error
	if !errors.As(err, &e) || e.Kind != transport.KindRetry || e.Code != "too_many_events" || n > maxEvents+1 {
		t.Errorf("after %d events: %v", n, err)
	}
	c.Close()
	<-sent
}

// TestFloodOfTheProviderEndsTheConnection: the error has a kind and can be retried.
func TestFloodOfTheProviderEndsTheConnection(t *testing.T) {
	p := newProvider(t)
	c, peer := p.connect(transport.Setup{})
	sent := make(chan struct{}) // closed when writing fails
	go func() {
		defer close(sent)
		for peer.ws.Write(context.Background(), websocket.MessageText, []byte(`{}`)) == nil {
		}
	}()
	_, err := c.Recv(context.Background())
	var e *transport.Error
	if !errors.As(err, &e) || e.Kind != transport.KindRetry || e.Code != "flood" {
		t.Errorf("the flood ended with %v", err)
	}
	c.Close()
	<-sent
}

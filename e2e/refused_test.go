package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"voicegw/protocol"
	"voicegw/session"
)

// TestRefusedHandshakes: half of the handshakes of many concurrent callers are refused, with a body and on reusable
// connections. Each caller gets a session or an error, each session works, and nothing is left when the gateway stops.
func TestRefusedHandshakes(t *testing.T) {
	t.Parallel()
	const callers = 60
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			model := newSim(t, setting{firstAudioMS: 10})
			var asked atomic.Int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1)%2 == 0 {
					http.Error(w, "Too busy; try again.", http.StatusServiceUnavailable)
					return
				}
				model.ServeHTTP(w, r)
			}))
			defer front.Close()
			defer front.CloseClientConnections()
			st := newStack(t, provider, setting{base: front.URL, limits: session.Limits{ExemptLoopback: true}})
			var all sync.WaitGroup
			var talked atomic.Int64
			for range callers {
				all.Go(func() {
					conn, err := protocol.Dial(context.Background(), st.url+"/v1/voice", protocol.DialOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Abort()
					if answered(t, conn) {
						talked.Add(1)
					}
				})
			}
			all.Wait()
			if talked.Load() == 0 {
				t.Error("no client got an answer")
			}
			over, end := context.WithCancel(context.Background())
			end()
			if err := st.manager.Drain(over); err != nil {
				t.Error(err)
			}
		})
	}
}

// answered opens a session and requests a turn. It returns at the turn's end or at the gateway's error.
func answered(t *testing.T, conn *protocol.Conn) bool {
	text, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000, PendingRequest: "Hello."})
	if err == nil {
		err = conn.WriteText(text)
	}
	if err != nil {
		t.Error(err)
		return false
	}
	explained := false // an error explains the missing session
	for {
		f, err := conn.Read()
		if err != nil {
			if !explained {
				t.Errorf("the connection ended without an answer: %v", err)
			}
			return false
		}
		if f.Audio {
			continue
		}
		m, err := protocol.ParseServer(f.Data)
		if err != nil {
			t.Error(err)
			return false
		}
		switch m.(type) {
		case *protocol.TurnEnded:
			return true
		case *protocol.Error:
			explained = true
		}
	}
}

package talk

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"voicegw/protocol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The test's gateway starts it with the program; it never ends.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// serve puts a gateway on a socket: one goroutine reads, the handler's own advances the gateway's time.
func serve(t *testing.T, g *gateway) string {
	t.Helper()
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		conn, err := protocol.Accept(w, r, protocol.AcceptOptions{})
		if err != nil {
			return
		}
		var mu sync.Mutex // guards g
		var seq int64
		g.send = func(m protocol.ServerMessage) {
			seq++
			data, err := protocol.EncodeServer(seq, m)
			if err == nil {
				_ = conn.WriteText(data)
			}
		}
		g.sendAudio = func(pcm []byte) { _ = conn.WriteAudio(pcm) }
		stop := make(chan struct{})
		var ticking sync.WaitGroup
		ticking.Go(func() {
			ticker := time.NewTicker(10 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
					mu.Lock()
					g.tick(10)
					mu.Unlock()
				}
			}
		})
		for {
			frame, err := conn.Read()
			if err != nil {
				break
			}
			mu.Lock()
			if frame.Audio {
				g.hearAudio(frame.Data)
			} else if m, err := protocol.ParseClient(frame.Data); err != nil {
				t.Errorf("the client sent %s: %v", frame.Data, err)
			} else {
				g.hear(m)
			}
			gone := g.gone
			mu.Unlock()
			if gone {
				break
			}
		}
		close(stop)
		ticking.Wait()
		_ = conn.Close(protocol.CloseInternal, "test")
		conn.Abort()
	}))
	t.Cleanup(func() { server.Close(); running.Wait() })
	return "ws" + strings.TrimPrefix(server.URL, "http") + "/v1/voice"
}

func TestRunOverASocket(t *testing.T) {
	g := newGateway()
	g.answerMS, g.silenceMS, g.latencyMS = 400, 200, 50
	r, err := Run(t.Context(), Options{
		URL: serve(t, g), Turns: []Turn{{Audio: tone(16000, 20, 300, 20)}, {Text: "and typed"}}, KeepAudio: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.SessionID != "s-1" || len(r.Turns) != 2 || !r.Turns[1].Answered || len(r.Audio) != 2*2*24000*400/1000 {
		t.Errorf("got %+v with %d bytes of audio", r, len(r.Audio))
	}
}

func TestRunHangsUpWhenItsContextEnds(t *testing.T) {
	g := newGateway()
	g.mute = true
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("ctrl-c")
	_, err := Run(ctx, Options{
		URL: serve(t, g), Turns: []Turn{{Audio: tone(16000, 0, 10_000)}},
		Events: func(e Event) {
			if e.Event == EventSpeaking {
				cancel(stop)
			}
		},
	})
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if !g.gone {
		t.Error("the gateway did not get session.end")
	}
}

func TestRunWithoutAGateway(t *testing.T) {
	_, err := Run(t.Context(), Options{URL: "ws://127.0.0.1:1/v1/voice", Turns: []Turn{{Text: "x"}}})
	if !errors.Is(err, ErrConnect) || !strings.Contains(err.Error(), "ws://127.0.0.1:1/v1/voice") {
		t.Errorf("error %v", err)
	}
}

func TestRunIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "The house is full.", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := Run(t.Context(), Options{URL: server.URL, Turns: []Turn{{Text: "x"}}})
	if !errors.Is(err, ErrConnect) || !strings.Contains(err.Error(), "The house is full.") {
		t.Errorf("error %v", err)
	}
}

func TestRunReportsCloseReason(t *testing.T) {
	g := newGateway()
	g.hangsUp = "All models are ill."
	_, err := Run(t.Context(), Options{URL: serve(t, g), Turns: []Turn{question()}})
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "1011") || !strings.Contains(err.Error(), "All models are ill.") {
		t.Errorf("error %v", err)
	}
}

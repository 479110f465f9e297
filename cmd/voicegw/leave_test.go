package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"voicegw/internal/server"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// TestSignalDuringConnects: sessions are being opened when the signal arrives, while the provider does not answer or
// refuses half of the handshakes. Each caller gets an answer, and the program exits.
func TestSignalDuringConnects(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(t *testing.T, ln net.Listener, asked func()){
		"silent": func(t *testing.T, ln net.Listener, asked func()) {
			for {
				conn, err := ln.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				asked()
			}
		},
		"refuses half": func(t *testing.T, ln net.Listener, asked func()) {
			var n atomic.Int64
			err := http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked()
				if n.Add(1)%2 == 0 {
					http.Error(w, "Too busy.", http.StatusServiceUnavailable)
					return
				}
				c, err := websocket.Accept(w, r, nil) // without an answer
				if err != nil {
					return
				}
				defer c.CloseNow()
				for {
					if _, _, err := c.Read(context.Background()); err != nil {
						return
					}
				}
			}))
			t.Log(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const callers = 20
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var provider, asking sync.WaitGroup
			asking.Add(callers)
			var asked atomic.Int64
			provider.Go(func() {
				serve(t, ln, func() {
					if asked.Add(1) <= callers {
						asking.Done()
					}
				})
			})
			defer provider.Wait()
			defer ln.Close()
			r := start(t, "--drain-timeout", "0s", "--set", "providers.openai.api_key=sk-x", "--set", "provider=openai",
				"--set", "providers.openai.base_url=http://"+ln.Addr().String()+"/v1", "--set", "limits.new_per_second=1000")
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					conn, err := protocol.Dial(t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Abort()
					if err := conn.WriteText([]byte(`{"type":"session.start","input_rate":16000,"output_rate":24000}`)); err != nil {
						t.Error(err)
						return
					}
					if code, last := closedWith(conn); code < 1000 {
						t.Errorf("closed with %d after %s", code, last)
					}
				})
			}
			asking.Wait()
			r.signals <- syscall.SIGTERM
			all.Wait()
			if code := r.ended(); code != exitOK {
				t.Errorf("exit code %d\n%s", code, r.err.String())
			}
		})
	}
}

// TestSignalEndsAStart: a signal ends a start that waits for a store which accepts connections but does not answer.
func TestSignalEndsAStart(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	signals := make(chan os.Signal, 2)
	var conns []net.Conn
	var store sync.WaitGroup
	store.Go(func() {
		conn, err := ln.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		conns = append(conns, conn)
		signals <- syscall.SIGTERM
		signals <- syscall.SIGTERM
	})
	var out, complaint console
	tools := registrytest.Project(t)
	code := Run(t.Context(), Process{
		Args: []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--set", "store.url=nats://" + ln.Addr().String()}, Stdin: strings.NewReader(""),
		Host: server.Host{Stdout: &out, Stderr: &complaint, Signals: signals, Registry: func() ([]byte, error) { return tools, nil }},
	})
	if code != exitFailure || !strings.Contains(complaint.String(), "stopped by a signal while it started") {
		t.Errorf("it ended with %d:\n%s", code, complaint.String())
	}
	store.Wait()
	for _, c := range conns {
		c.Close()
	}
}

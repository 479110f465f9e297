package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// console is a terminal's output that a test reads while the program writes.
type console struct {
	mu   sync.Mutex // guards the next field
	text bytes.Buffer
}

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(b)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// running is a program in this process.
type running struct {
	t       *testing.T
	out     console
	err     console
	signals chan os.Signal
	reloads chan os.Signal
	sweeps  chan time.Time
	exit    chan int // its exit code, once; never closed
	addr    string
	dataDir string
}

// key is the key of its operators.
func (r *running) key() string {
	r.t.Helper()
	key, err := auth.ReadOperatorKey(r.dataDir)
	if err != nil {
		r.t.Fatal(err)
	}
	return key
}

// start runs serve on a free port, with a new data folder unless args name one, and waits until it serves. It ends with
// the test.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startIn(t, nil, args...)
}

// startIn is start with an environment.
func startIn(t *testing.T, environ []string, args ...string) *running {
	t.Helper()
	tools := registrytest.Project(t)
	return startAs(t, Process{Host: server.Host{Environ: environ, Registry: func() ([]byte, error) { return tools, nil }}}, args...)
}

// startAs starts a program with its own environment and tools.
func startAs(t *testing.T, p Process, args ...string) *running {
	t.Helper()
	r := &running{t: t, signals: make(chan os.Signal, 2), reloads: make(chan os.Signal, 1), sweeps: make(chan time.Time, 1), exit: make(chan int, 1)}
	// No test here loses power or needs a slow disk.
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--data-dir", t.TempDir(), "--set", "store.sync=interval"}, args...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}) // closed after the program has ended
	go func() {
		defer close(done)
		p.Args, p.Stdin, p.Stdout, p.Stderr = args, strings.NewReader(""), &r.out, testutil.Watch(testutil.Log, &r.err)
		p.Signals, p.Reloads, p.Sweeps = r.signals, r.reloads, r.sweeps
		p.LeaveTime = testutil.WaitLimit // enough for a slow disk after a second signal
		r.exit <- Run(ctx, p)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if r.dataDir != "" {
			testutil.CheckFolder(t, r.dataDir)
		}
	})
	serving := r.logged("serving")
	r.addr, r.dataDir = serving["addr"].(string), serving["data_dir"].(string)
	return r
}

// logged waits for a line of the log.
func (r *running) logged(message string) map[string]any {
	r.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(testutil.WaitLimit); ; {
		for line := range strings.SplitSeq(r.err.String(), "\n") {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
				return fields
			}
		}
		select {
		case <-tick.C:
		case code := <-r.exit:
			r.t.Fatalf("the program ended with %d without logging %q:\n%s", code, message, r.err.String())
		case <-deadline:
			r.t.Fatalf("%q was not logged:\n%s", message, r.err.String())
		}
	}
}

// ended waits for the program's end.
func (r *running) ended() int {
	r.t.Helper()
	select {
	case code := <-r.exit:
		return code
	case <-time.After(testutil.WaitLimit):
		r.t.Fatalf("the program does not end:\n%s", r.err.String())
		return -1
	}
}

func (r *running) status(path string) int {
	r.t.Helper()
	status, _ := r.fetch(path)
	return status
}

// readiness returns the status of /readyz. On a busy machine it may be "behind" at any time.
func (r *running) readiness() string {
	r.t.Helper()
	var reply struct {
		Status string `json:"status"`
	}
	if _, body := r.fetch("/readyz"); json.Unmarshal(body, &reply) != nil {
		r.t.Fatalf("GET /readyz: %s", body)
	}
	return reply.Status
}

// fetch returns the status and the body of an answer.
func (r *running) fetch(path string) (int, []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.addr+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, body
}

// connect opens a session.
func (r *running) connect() *protocol.Conn {
	r.t.Helper()
	conn, err := protocol.Dial(r.t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	message, err := protocol.EncodeClient(&protocol.Start{InputRate: 16000, OutputRate: 24000})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := conn.WriteText(message); err != nil {
		r.t.Fatal(err)
	}
	frame, err := conn.Read()
	if err != nil || !strings.Contains(string(frame.Data), "session.started") {
		r.t.Fatalf("%s, %v", frame.Data, err)
	}
	return conn
}

// closedWith reads to the end of a session and returns the close code.
func closedWith(conn *protocol.Conn) (code int, last string) {
	for {
		frame, err := conn.Read()
		if err != nil {
			return int(protocol.CloseStatus(err)), last
		}
		last = string(frame.Data)
	}
}

func TestServesAndStops(t *testing.T) {
	t.Parallel()
	r := start(t)
	for path, want := range map[string]int{"/": 200, "/healthz": 200, "/nothing": 404} {
		if got := r.status(path); got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	testutil.WaitUntil(t, "it is ready", func() bool { return r.readiness() == "ready" })
	r.signals <- syscall.SIGTERM
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, r.err.String())
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the address is still served")
	}
}

// TestFirstSignalKeepsSessions: after the first signal, sessions that no other process could continue run on.
func TestFirstSignalKeepsSessions(t *testing.T) {
	t.Parallel()
	r := start(t, "--drain-timeout", "1m", "--set", "limits.resume_grace=0s")
	conn := r.connect()
	defer conn.Abort()
	r.signals <- syscall.SIGTERM
	r.logged("draining")
	if got := r.readiness(); got != "draining" {
		t.Errorf("GET /readyz: %s", got)
	}
	end, err := protocol.EncodeClient(&protocol.End{})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.WriteText(end); err != nil {
		t.Fatalf("the session has ended: %v", err)
	}
	if code, last := closedWith(conn); code != int(protocol.CloseDone) {
		t.Errorf("closed with %d after %s", code, last)
	}
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestDrainEnds(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]bool{"after its time": false, "with a second signal": true} {
		t.Run(name, func(t *testing.T) {
			timeout := "100ms"
			if second {
				timeout = "1m"
			}
			r := start(t, "--drain-timeout", timeout, "--set", "limits.resume_grace=0s")
			conn := r.connect()
			defer conn.Abort()
			r.signals <- syscall.SIGTERM
			if second {
				r.signals <- syscall.SIGINT
			}
			code, last := closedWith(conn)
			if code != int(protocol.CloseServerLeaving) || !strings.Contains(last, "server_shutdown") {
				t.Errorf("closed with %d after %s", code, last)
			}
			if code := r.ended(); code != exitOK {
				t.Errorf("exit code %d\n%s", code, r.err.String())
			}
		})
	}
}

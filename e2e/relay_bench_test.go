package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/gateway"
	"voicegw/internal/nonblock"
	"voicegw/internal/traces"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/session"
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/openai"
)

// relayEnv runs the test binary as a gateway process, so that its CPU and memory are separate from those of its
// clients and the provider. Its value is "provider base-URL", then "tls" for TLS clients, or "traces=URL" for a
// collector.
const relayEnv = "VOICEGW_E2E_RELAY"

// runRelay is the gateway's process: it prints its address, then its memory for each line of input, and ends with the
// input.
func runRelay(target string) error {
	words := strings.Fields(target)
	name, base, secure, collector := words[0], words[1], slices.Contains(words, "tls"), ""
	if at, ok := strings.CutPrefix(words[len(words)-1], "traces="); ok {
		collector = at
	}
	transports := make(map[string]transport.Transport)
	loops := gateway.NewLoops(nil)
	client := nonblock.Client(nil, loops)
	var err error
	if name == "gemini" {
		transports[name], err = gemini.New(gemini.Options{APIKey: "bench", BaseURL: base, HTTPClient: client})
	} else {
		transports[name], err = openai.New(openai.Options{APIKey: "bench", BaseURL: base + "/v1", HTTPClient: client})
	}
	if err != nil {
		return err
	}
	var follow session.Follow
	var spans *traces.Traces
	if collector != "" {
		if spans, err = traces.New(traces.Options{Endpoint: collector, Ratio: 1}); err != nil {
			return err
		}
		spans.Know(nil, traces.Model{})
		follow = spans.Voice
	}
	m, err := session.NewManager(session.Options{
		Follow:     follow,
		Transports: transports, Provider: name, Limits: session.Limits{ExemptLoopback: true},
		Policy: orchestrator.Policy{ResumeGrace: 10 * time.Minute}, // clients may resume, as in production
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: gateway.New(gateway.Options{Sessions: m}), ConnContext: gateway.ConnContext, ReadHeaderTimeout: time.Minute}
	scheme, clients := "http", gateway.Listen(ln, loops)
	if secure {
		scheme = "https"
		clients = gateway.ListenTLS(ln, loops, &tls.Config{Certificates: exampleTLS().TLS.Certificates}, nil)
	}
	go srv.Serve(clients)
	defer srv.Close()
	fmt.Println(scheme + "://" + ln.Addr().String())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		for in.Text() == "away" && m.Away() < m.Running() {
			runtime.Gosched()
		}
		if in.Text() != "now" {
			debug.FreeOSMemory()
			runtime.GC() // pools are emptied by the second collection
		}
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		if err := json.NewEncoder(os.Stdout).Encode(relayMemory{Heap: ms.HeapAlloc, Stack: ms.StackInuse, Mallocs: ms.Mallocs, Allocated: ms.TotalAlloc, Goroutines: runtime.NumGoroutine(), Traces: spans.Stats()}); err != nil {
			return err
		}
	}
	m.Close()
	atOnce, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return spans.Close(atOnce)
}

// exampleTLS is a closed server with Go's test certificate for 127.0.0.1 and a client that trusts it.
func exampleTLS() *httptest.Server {
	srv := httptest.NewTLSServer(nil)
	srv.Close()
	return srv
}

// relayMemory is the process's memory, in bytes.
type relayMemory struct {
	Heap, Stack, Mallocs, Allocated uint64
	Goroutines                      int
	Traces                          traces.Stats
}

// relay is the process seen from outside.
type relay struct {
	cmd *exec.Cmd
	url string
	ask func(what string) (relayMemory, error)
}

// startRelay starts it; secure means TLS clients.
func startRelay(b testing.TB, provider, base string, secure bool) *relay {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), relayEnv+"="+provider+" "+base)
	if secure {
		cmd.Env[len(cmd.Env)-1] += " tls"
	}
	return startedRelay(b, cmd)
}

// startedRelay starts a relay's process.
func startedRelay(b testing.TB, cmd *exec.Cmd) *relay {
	b.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(out)
	url, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error("the relay:", err)
		}
	})
	return &relay{cmd: cmd, url: strings.TrimSpace(url), ask: func(what string) (m relayMemory, err error) {
		if _, err := fmt.Fprintln(in, what); err != nil {
			return m, err
		}
		line, err := lines.ReadBytes('\n')
		return m, errors.Join(err, json.Unmarshal(line, &m))
	}}
}

// cpu returns the process's user and system time (proc(5), fields 14 and 15, in ticks of 10 ms).
func (r *relay) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		b.Skip("there is no /proc here:", err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	user, errU := strconv.Atoi(f[11])
	system, errS := strconv.Atoi(f[12])
	if err := errors.Join(errU, errS); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// echoProvider speaks enough of a provider's wire to return each audio frame as one of the model's, of the same
// length; with floodVoice it sends tiny events endlessly.
func echoProvider(frame int) *httptest.Server {
	pcm := base64.StdEncoding.EncodeToString(make([]byte, frame))
	geminiAudio := []byte(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + pcm + `"}}]}}}`)
	openaiAudio := []byte(`{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"` + pcm + `"}`)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ws.SetReadLimit(1 << 20)
		ctx := context.Background()
		isGemini := strings.Contains(r.URL.Path, "BidiGenerateContent")
		audio := openaiAudio
		hello := `{"type":"session.created","event_id":"e","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime","audio":{"input":{},"output":{}}}}`
		var setup []byte
		if isGemini {
			audio, hello = geminiAudio, `{"setupComplete":{}}`
			if _, setup, err = ws.Read(ctx); err != nil {
				return
			}
		}
		if ws.Write(ctx, websocket.MessageText, []byte(hello)) != nil {
			return
		}
		if !isGemini {
			if _, setup, err = ws.Read(ctx); err != nil {
				return
			}
			ws.Write(ctx, websocket.MessageText, []byte(strings.Replace(hello, "created", "updated", 1)))
			ws.Write(ctx, websocket.MessageText, []byte(`{"type":"response.created","event_id":"e","response":{"id":"resp_1","status":"in_progress"}}`))
		}
		for bytes.Contains(setup, []byte(`"`+floodVoice+`"`)) {
			if ws.Write(ctx, websocket.MessageText, []byte(`{}`)) != nil {
				return
			}
		}
		for buf := make([]byte, 64<<10); ; {
			_, rd, err := ws.Reader(ctx)
			if err != nil {
				return
			}
			n, _ := io.ReadFull(rd, buf) // the next Reader fails as this one does
			_, _ = io.Copy(io.Discard, rd)
			if !bytes.Contains(buf[:min(n, 100)], []byte(`"audio":`)) {
				continue // for example the notice that the audio pauses
			}
			if ws.Write(ctx, websocket.MessageText, audio) != nil {
				return
			}
		}
	}))
}

// relayWay has a relay's protocols on both sides.
type relayWay struct {
	provider string
	secure   bool // TLS clients
}

var relayWays = []relayWay{{"gemini", false}, {"gemini", true}, {"openai", false}, {"openai", true}}

func (w relayWay) name() string {
	if w.secure {
		return w.provider + "-tls"
	}
	return w.provider
}

// BenchmarkRelay runs 200 sessions through a gateway process, each with 20 ms of audio every 20 ms in both
// directions. It reports CPU and allocations per relayed frame (one direction), and memory per idle session.
func BenchmarkRelay(b *testing.B) {
	const sessions = 200
	for _, w := range relayWays {
		provider := w.provider
		b.Run(w.name(), func(b *testing.B) {
			rate := 16000
			if provider == "openai" {
				rate = 24000
			}
			frame := rate / 50 * 2
			srv := echoProvider(frame)
			defer srv.Close()
			r := startRelay(b, provider, srv.URL, w.secure)
			empty, err := r.ask("settle")
			if err != nil {
				b.Fatal(err)
			}
			clients := make([]*protocol.Conn, sessions)
			for i := range clients {
				clients[i] = benchClient(b, r.url, rate)
				defer clients[i].Abort()
			}
			idle, err := r.ask("settle")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				measureRelay(b, r, clients, frame)
			}
			b.ReportMetric(float64(idle.Heap-empty.Heap)/1024/sessions, "KB-heap/idle-session")
			b.ReportMetric(float64(idle.Stack-min(idle.Stack, empty.Stack))/1024/sessions, "KB-stack/idle-session")
			b.ReportMetric(float64(idle.Goroutines-empty.Goroutines)/sessions, "goroutines/session")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// trusting trusts the relay's certificate.
var trusting = exampleTLS().Client()

func benchClient(b testing.TB, url string, rate int) *protocol.Conn {
	b.Helper()
	c, err := protocol.Dial(context.Background(), url+"/v1/voice", protocol.DialOptions{Client: trusting})
	if err != nil {
		b.Fatal(err)
	}
	text, err := protocol.EncodeClient(&protocol.Start{InputRate: rate, OutputRate: 24000})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.WriteText(text); err != nil {
		b.Fatal(err)
	}
	f, err := c.Read()
	if err != nil {
		b.Fatal(err)
	}
	if m, err := protocol.ParseServer(f.Data); err != nil {
		b.Fatal(err)
	} else if _, ok := m.(*protocol.SessionStarted); !ok {
		b.Fatalf("the gateway answered %s", f.Data)
	}
	return c
}

// relayTime is the length of one measurement.
const relayTime = 5 * time.Second

func measureRelay(b *testing.B, r *relay, clients []*protocol.Conn, frame int) {
	b.Helper()
	var sent, got atomic.Int64
	var writers, readers sync.WaitGroup
	stop := time.Now().Add(relayTime)
	before, err := r.ask("now")
	if err != nil {
		b.Fatal(err)
	}
	cpu := r.cpu(b)
	pcm := make([]byte, frame)
	for i, c := range clients {
		readers.Go(func() {
			for time.Now().Before(stop.Add(-50 * time.Millisecond)) {
				f, err := c.Read()
				if err != nil {
					return
				}
				if f.Audio {
					got.Add(1)
				}
			}
		})
		writers.Go(func() {
			next := time.Now().Add(time.Duration(i) * 20 * time.Millisecond / time.Duration(len(clients)))
			for ; next.Before(stop); next = next.Add(20 * time.Millisecond) {
				<-time.After(time.Until(next))
				if c.WriteAudio(pcm) != nil {
					return
				}
				sent.Add(1)
			}
		})
	}
	writers.Wait()
	readers.Wait()
	cpu = r.cpu(b) - cpu
	after, err := r.ask("now")
	if err != nil {
		b.Fatal(err)
	}
	frames := float64(sent.Load() + got.Load())
	b.ReportMetric(float64(cpu.Microseconds())/frames, "cpu-us/frame")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/frames, "mallocs/frame")
	b.ReportMetric(100*float64(got.Load())/float64(sent.Load()), "%delivered")
}

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"voicegw/gateway"
	"voicegw/gateway/phone"
	"voicegw/internal/nonblock"
	"voicegw/internal/origin"
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

// relayListen is the variable with the address on which the gateway listens.
const relayListen = "VOICEGW_E2E_LISTEN"

// runRelay is the gateway's process: it prints its address, then its memory for each line of input, and ends with the
// input.
func runRelay(target string) error {
	debug.SetGCPercent(50) // as serve does
	words := strings.Fields(target)
	name, base, secure, collector := words[0], words[1], slices.Contains(words, "tls"), ""
	if at, ok := strings.CutPrefix(words[len(words)-1], "traces="); ok {
		collector = at
	}
	transports := make(map[string]transport.Transport)
	loops := gateway.NewLoops(nil)
	client := nonblock.Client(nil, loops)
	var err error
	switch name {
	case "gemini":
		transports[name], err = gemini.New(transport.Provider{APIKey: "bench", BaseURL: base, HTTPClient: client})
	case "live":
		transports[name], err = liveModel("bench", base, client)
	default:
		transports[name], err = openai.New(transport.Provider{APIKey: "bench", BaseURL: base + "/v1", HTTPClient: client})
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
	desk := &phoneHandoffs{}
	m, err := session.NewManager(session.Options{
		Follow:     follow,
		Handoffs:   desk,
		Transports: transports, Provider: name, Limits: session.Limits{ExemptLoopback: true, Sessions: 10_000, PerAddress: 10_000, NewPerSecond: 10_000},
		Policy:      orchestrator.Policy{ResumeGrace: 10 * time.Minute}, // clients may resume, as in production
		JoinSilence: true,
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", cmp.Or(os.Getenv(relayListen), "127.0.0.1")+":0")
	if err != nil {
		return err
	}
	calls := phone.New(phone.Options{Settings: *phoneSettings(), Voice: desk})
	defer calls.Close(context.Background())
	srv := &http.Server{Handler: gateway.New(gateway.Options{Sessions: m, Phone: calls, Settings: gateway.Settings{Hosts: origin.Hosts{Listen: netip.IPv4Unspecified()}}}), ConnContext: gateway.ConnContext, ReadHeaderTimeout: time.Minute}
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
			runtime.GC() // the second collection empties pools
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

// relay is the process from the outside.
type relay struct {
	cmd *exec.Cmd
	url string
	ask func(what string) (relayMemory, error) // nil for nginx
	raw bool                                   // it relays the provider's wire
}

// startRelay starts a relay; secure means TLS clients.
func startRelay(b testing.TB, provider, base string, secure bool) *relay {
	b.Helper()
	if *relayFlag == nginxRelay {
		return startNginx(b, base)
	}
	args, _, there := place()
	args = append(args, cmp.Or(*relayFlag, os.Args[0]))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), relayListen+"="+there, relayEnv+"="+provider+" "+base)
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

// relayWay contains a relay's protocols on both sides.
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

// rate is the sample rate that the provider takes, in Hz.
func (w relayWay) rate() int {
	if w.provider == "gemini" {
		return 16000
	}
	return 24000
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

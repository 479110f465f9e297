//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
)

// TestMain lets the test binary be the processes that a bench starts of itself, and a relay.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		do := func() error { return command(os.Args[1:], os.Stdin, os.Stdout) }
		if os.Args[1] == "copy" {
			do = func() error { return copyBytes(os.Stdout, os.Args[2], os.Args[3]) }
		}
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// copyBytes is a relay that says its address, takes plain connections and copies bytes. If a certificate's file is
// given it speaks TLS to the other side, and trusts that certificate only.
func copyBytes(out io.Writer, to, cert string) error {
	var config *tls.Config
	if cert != "" {
		text, err := os.ReadFile(cert)
		if err != nil {
			return err
		}
		config = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("no certificate in " + cert)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say(out, "%s\n", ln.Addr())
	for {
		client, err := ln.Accept()
		if err != nil {
			return err
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		if config != nil {
			config.ServerName = "127.0.0.1"
			far = tls.Client(far, config)
		}
		go func() { _, _ = io.Copy(far, client); _ = far.Close() }()
		go func() { _, _ = io.Copy(client, far); _ = client.Close() }()
	}
}

// copying is a kind of relay that copyBytes plays.
var copying = kind{"copy", "copies bytes", speakGemini, wireGemini, func(b *bench, to upstream) (*relay, error) {
	p, err := start(b.relayOn, nil, b.self, "copy", to.addr, to.cert)
	if err != nil {
		return nil, err
	}
	addr, err := p.line()
	return &relay{addr: addr, proc: p}, err
}}

func testBench(t *testing.T) *bench {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{self: self, dir: t.TempDir(), out: t.Output()}
}

// TestFramesGoAround: every frame that is sent comes back, also from a provider that speaks TLS,
// and the relay's CPU and memory are seen.
func TestFramesGoAround(t *testing.T) {
	b := testBench(t)
	for _, k := range []kind{copying, copying.overTLS()} {
		r, err := b.one(k, scenario{sessions: 20, frame: 20 * time.Millisecond, warm: 100 * time.Millisecond, measure: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if l := r.Load; l.Failure != "" || l.Sent < 900 || l.Got != l.Sent || l.P50 == 0 || l.P99 < l.P50 {
			t.Errorf("%s: %+v", k.name, l)
		}
		if r.MicrosPF == 0 || r.EmptyMB == 0 {
			t.Errorf("%s: the relay was not measured: %+v", k.name, r)
		}
	}
}

// TestOpenAIsWire: its provider greets, answers the setup, and each frame of audio.
func TestOpenAIsWire(t *testing.T) {
	server := httptest.NewServer(provider{openai: answersOn(wireOpenAI, 640)})
	defer server.Close()
	conn, _, err := ws.Dial(t.Context(), server.URL+pathOpenAI, nil, ws.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	var seen []string
	for _, message := range []string{`{"type":"session.update"}`, strings.Repeat("x", smallestAudio-1), strings.Repeat("x", smallestAudio)} {
		if err := conn.Write(websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		_, message, err := conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		var event struct{ Type string }
		if err := json.Unmarshal(message, &event); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event.Type)
	}
	if want := []string{"session.created", "session.updated", "response.created", "response.output_audio.delta"}; !slices.Equal(seen, want) {
		t.Errorf("the provider said %q, want %q", seen, want)
	}
}

// TestNamesOfKinds: a name says the relay, whether it speaks TLS, and which build it is.
func TestNamesOfKinds(t *testing.T) {
	built := gatewayOther.overTLS().build("/a/build")
	if name, front, secure := gatewayKind.withTLS().plain(); name != "voicegw" || !front || secure || !gatewayKind.withTLS().isGateway() || gatewayKind.withTLS().beside(nginx).name != "tls+nginx" {
		t.Errorf("TLS to the clients: %q, %t, %t", name, front, secure)
	}
	if name, _, secure := built.plain(); built.name != "voicegw/openai+tls@/a/build" || name != "voicegw/openai" || !secure {
		t.Errorf("%s is %s, with TLS: %t", built.name, name, secure)
	}
	secure := gatewayKind.overTLS()
	if k := secure.beside(nginx); k.name != "nginx+tls" {
		t.Errorf("one with TLS is held against %s", k.name)
	}
	if k := gatewayKind.beside(nginx); k.name != "nginx" {
		t.Errorf("one without TLS is held against %s", k.name)
	}
}

// TestDirty: a run counts only if what was sent came back in time, and was sent in time.
func TestDirty(t *testing.T) {
	good := loadResult{Sent: 1000, Got: 990, P95: 2000, LateP95: 100}
	for _, tc := range []struct {
		why    string
		change func(*loadResult)
	}{
		{"", func(*loadResult) {}},
		{"nothing was sent", func(l *loadResult) { l.Sent, l.Got = 0, 0 }},
		{"97.0 % of the frames came back", func(l *loadResult) { l.Got = 970 }},
		{"103.0 % of the frames came back", func(l *loadResult) { l.Got = 1030 }},
		{"the load lags 6.0 ms behind (p95)", func(l *loadResult) { l.LateP95 = 6000 }},
		{"round trips of 16.0 ms (p95)", func(l *loadResult) { l.P95 = 16000 }},
		{"session 3: gone", func(l *loadResult) { l.Failure = "session 3: gone" }},
	} {
		l := good
		tc.change(&l)
		if why := (run{Load: l}).dirty(); why != tc.why {
			t.Errorf("dirty because %q, want %q", why, tc.why)
		}
	}
}

// TestMediansAreOfCleanRuns alone.
func TestMediansAreOfCleanRuns(t *testing.T) {
	ok := loadResult{Sent: 10, Got: 10}
	res := result{step: step{kinds: []kind{direct}}, runs: [][]run{{
		{Load: ok, MicrosPF: 3}, {Load: loadResult{Sent: 10, Got: 5}, MicrosPF: 100}, {Load: ok, MicrosPF: 1}, {Load: ok, MicrosPF: 2}, {Load: ok, MicrosPF: 9},
	}}}
	if m := res.of(direct, microsPF); m != 2.5 {
		t.Errorf("the median is %v, want 2.5", m)
	}
	if m := res.of(nginx, microsPF); m != 0 {
		t.Errorf("a relay that was not measured has %v", m)
	}
}

// TestFiguresAreOfEachBuild.
func TestFiguresAreOfEachBuild(t *testing.T) {
	release := kind{name: "voicegw@release"}
	work := func(micros, trip float64) []run {
		return []run{{Load: loadResult{Sent: 10, Got: 10, P50: trip}, MicrosPF: micros, Mallocs: micros / 1000}}
	}
	s := step{kinds: []kind{release, gatewayKind}}
	short := result{step: s, runs: [][]run{work(12, 900), work(14, 900)}}
	long := result{step: s, runs: [][]run{work(30, 900), work(40, 900)}}
	light := result{step: s, runs: [][]run{work(60, 300), work(70, 250)}}
	for k, want := range map[string]map[string]float64{
		release.name:     {"cpu_20ms": 12, "cpu_100ms": 30, "p50_20ms": 300, "mallocs_20ms": 0.012, "idle_kb": 7},
		gatewayKind.name: {"cpu_20ms": 14, "cpu_100ms": 40, "p50_20ms": 250, "mallocs_20ms": 0.014, "idle_kb": 7},
	} {
		found := figuresOf(kind{name: k}, short, long, light, run{SettledKB: 7})
		if !maps.Equal(found, want) {
			t.Errorf("%s: %v, want %v", k, found, want)
		}
		for _, f := range figures {
			if _, ok := found[f.name]; !ok {
				t.Errorf("%s is judged and not measured", f.name)
			}
		}
	}
}

// TestNoFigureWithoutACleanRun: a missing figure is not taken for the best one.
func TestNoFigureWithoutACleanRun(t *testing.T) {
	s := step{kinds: []kind{direct, gatewayKind}}
	clean := run{Load: loadResult{Sent: 10, Got: 10, P50: 200}, MicrosPF: 10}
	good := result{step: s, runs: [][]run{{clean}, {clean}}}
	bad := result{step: s, runs: [][]run{{clean}, {{Load: loadResult{Sent: 10, Got: 5, P50: 200}, MicrosPF: 10}}}}
	if err := measured(figuresOf(gatewayKind, good, good, good, run{})); err != nil {
		t.Error(err)
	}
	for dirty, steps := range map[string][3]result{"200 sessions": {bad, good, good}, "500": {good, bad, good}, "100": {good, good, bad}} {
		if err := measured(figuresOf(gatewayKind, steps[0], steps[1], steps[2], run{})); !errors.Is(err, errNoCleanRun) {
			t.Errorf("%s without a clean run: %v", dirty, err)
		}
	}
}

// TestJudge: a figure may differ by its margin, and a small one by its least difference; a
// worse one fails.
func TestJudge(t *testing.T) {
	old := map[string]float64{"cpu_20ms": 20, "cpu_100ms": 1, "mallocs_20ms": 0.001, "idle_kb": 10, "p50_20ms": 200}
	for _, tc := range []struct {
		name  string
		found map[string]float64
		worse bool
	}{
		{"the same", map[string]float64{"cpu_20ms": 20, "idle_kb": 10}, false},
		{"within the margins", map[string]float64{"cpu_20ms": 22.9, "mallocs_20ms": 0.02, "idle_kb": 10.9, "p50_20ms": 239}, false},
		{"less than counts", map[string]float64{"cpu_100ms": 1.49}, false},
		{"more CPU", map[string]float64{"cpu_20ms": 23.1}, true},
		{"more memory", map[string]float64{"idle_kb": 11.1}, true},
		{"an allocation in fifty frames", map[string]float64{"mallocs_20ms": 0.022}, true},
	} {
		err := judge(t.Output(), "v1", old, tc.found)
		if errors.Is(err, errWorse) != tc.worse {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the processes that a bench starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if err := command(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testBench(t *testing.T) *bench {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{self: self, dir: t.TempDir(), out: t.Output()}
}

// TestFramesGoAround: every frame that is sent comes back, on both wires, and the relay's
// CPU and memory are seen.
func TestFramesGoAround(t *testing.T) {
	b := testBench(t)
	openai := splice
	openai.speak = speakOpenAI
	for _, k := range []kind{splice, openai} {
		r, err := b.one(k, scenario{sessions: 20, frame: 20 * time.Millisecond, warm: 100 * time.Millisecond, measure: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if l := r.Load; l.Failure != "" || l.Sent < 900 || l.Got != l.Sent || l.P50 == 0 || l.P99 < l.P50 {
			t.Errorf("%s: %+v", k.speak, l)
		}
		if r.MicrosPF == 0 || r.EmptyMB == 0 {
			t.Errorf("%s: the relay was not measured: %+v", k.speak, r)
		}
	}
}

// TestFramesGoAroundOverTLS: with a provider that speaks TLS, through nothing but what
// undoes it, so that the provider is tested and no relay.
func TestFramesGoAroundOverTLS(t *testing.T) {
	b := testBench(t)
	k := splice.overTLS()
	k.start = startUnwrapping(t)
	r, err := b.one(k, scenario{sessions: 10, frame: 20 * time.Millisecond, warm: 100 * time.Millisecond, measure: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Load; l.Failure != "" || l.Sent < 450 || l.Got != l.Sent {
		t.Errorf("%+v", l)
	}
}

// startUnwrapping starts a relay of this process that takes plain connections to a
// provider over TLS, and trusts its certificate only.
func startUnwrapping(t *testing.T) func(*bench, upstream) (*relay, error) {
	return func(_ *bench, to upstream) (*relay, error) {
		text, err := os.ReadFile(to.cert)
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(text) {
			return nil, errors.New("no certificate in " + to.cert)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = ln.Close() })
		go func() {
			for {
				client, err := ln.Accept()
				if err != nil {
					return
				}
				provider, err := tls.Dial("tcp", to.addr, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: trusted})
				if err != nil {
					_ = client.Close()
					continue
				}
				go func() { _, _ = io.Copy(provider, client); _ = provider.Close() }()
				go func() { _, _ = io.Copy(client, provider); _ = client.Close() }()
			}
		}()
		return &relay{addr: ln.Addr().String()}, nil
	}
}

// TestNamesOfKinds: a name says the relay, whether it speaks TLS, and which build it is.
func TestNamesOfKinds(t *testing.T) {
	built := gatewayOther.overTLS().build("/a/build")
	if name, secure := built.plain(); built.name != "voicegw/openai+tls@/a/build" || name != "voicegw/openai" || !secure {
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
	res := result{step: step{kinds: []kind{splice}}, runs: [][]run{{
		{Load: ok, MicrosPF: 3}, {Load: loadResult{Sent: 10, Got: 5}, MicrosPF: 100}, {Load: ok, MicrosPF: 1}, {Load: ok, MicrosPF: 2}, {Load: ok, MicrosPF: 9},
	}}}
	if m := res.of(splice, microsPF); m != 2.5 {
		t.Errorf("the median is %v, want 2.5", m)
	}
	if m := res.of(nginx, microsPF); m != 0 {
		t.Errorf("a relay that was not measured has %v", m)
	}
}

// TestFiguresAreOfEachBuild, in multiples of one calibration.
func TestFiguresAreOfEachBuild(t *testing.T) {
	release := kind{name: "voicegw@release"}
	work := func(micros, trip float64) []run {
		return []run{{Load: loadResult{Sent: 10, Got: 10, P50: trip}, MicrosPF: micros, Mallocs: micros / 1000}}
	}
	s := step{kinds: []kind{splice, release, gatewayKind}}
	short := result{step: s, runs: [][]run{work(10, 900), work(12, 900), work(14, 900)}}
	long := result{step: s, runs: [][]run{work(20, 900), work(30, 900), work(40, 900)}}
	light := result{step: s, runs: [][]run{work(50, 200), work(60, 300), work(70, 250)}}
	for k, want := range map[string]map[string]float64{
		release.name:     {"cpu_20ms": 1.2, "cpu_100ms": 1.5, "p50_20ms": 1.5, "mallocs_20ms": 0.012, "idle_kb": 7},
		gatewayKind.name: {"cpu_20ms": 1.4, "cpu_100ms": 2, "p50_20ms": 1.25, "mallocs_20ms": 0.014, "idle_kb": 7},
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
	s := step{kinds: []kind{splice, gatewayKind}}
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
// worse one fails, and one that the baseline does not know does not.
func TestJudge(t *testing.T) {
	old := baseline{Version: "v1", Figures: map[string]float64{"cpu_20ms": 2, "mallocs_20ms": 0.001, "idle_kb": 10, "p50_20ms": 1}}
	for _, tc := range []struct {
		name  string
		found map[string]float64
		worse bool
	}{
		{"the same", map[string]float64{"cpu_20ms": 2, "idle_kb": 10}, false},
		{"within the margins", map[string]float64{"cpu_20ms": 2.29, "mallocs_20ms": 0.02, "idle_kb": 10.9, "p50_20ms": 1.19}, false},
		{"new", map[string]float64{"cpu_100ms": 99}, false},
		{"more CPU", map[string]float64{"cpu_20ms": 2.31}, true},
		{"more memory", map[string]float64{"idle_kb": 11.1}, true},
		{"an allocation in fifty frames", map[string]float64{"mallocs_20ms": 0.022}, true},
	} {
		err := judge(t.Output(), old, tc.found)
		if errors.Is(err, errWorse) != tc.worse {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

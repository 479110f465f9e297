package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// TestTraces: a conversation that begins in text and continues by voice is one trace below the caller's span, and both
// protocols deliver it to a collector.
func TestTraces(t *testing.T) {
	for _, by := range []string{"http", "grpc"} {
		t.Run(by, func(t *testing.T) {
			c := testutil.OpenCollector(t)
			endpoint := map[string]string{"http": c.HTTP, "grpc": c.GRPC}[by]
			t.Setenv("OTEL_SERVICE_NAME", "desk")
			r := start(t, "--sim", "always", "--provider", "openai", "--set", "sim.speed=-1", "--set", "sim.first_audio_ms=1", "--set", "traces.enabled=true", "--set", "traces.protocol="+by,
				"--set", "traces.endpoint="+endpoint, "--set", "traces.headers=authorization=Bearer%20cherry-0123456789", "--set", "traces.slow=1m")
			said := r.speaksOnWith(r.invited())
			r.signals <- syscall.SIGTERM
			if code := r.ended(); code != 0 {
				t.Errorf("the exit code is %d", code)
			}
			leave := []string{"gen_ai.conversation.id", "voicegw.session.id", "server.address", "server.port", "gen_ai.response.id", "gen_ai.response.time_to_first_chunk", "voicegw.latency.first_ms",
				"voicegw.latency.provider_ms", "voicegw.latency.gateway_ms", "voicegw.latency.detection_ms", "voicegw.session.wait_ms", "voicegw.tool.ran_ms", "voicegw.tool.queued_ms", "voicegw.interrupted.heard_ms",
				"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.text.input_tokens", "gen_ai.usage.audio.output_tokens", "gen_ai.usage.text.output_tokens", "gen_ai.usage.audio.input_tokens",
				"voicegw.cost_usd_micros", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.text.cache_read.input_tokens", "gen_ai.usage.audio.cache_read.input_tokens"}
			got := testutil.Trees(c.Spans(), leave...)
			want, err := os.ReadFile("testdata/handoff_trace.txt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			requests, headers := c.Requests()
			for _, h := range headers {
				if h["authorization"] != "Bearer cherry-0123456789" {
					t.Errorf("the headers are %v", h)
				}
			}
			all := ""
			for _, one := range requests {
				all += one.String()
			}
			if !strings.Contains(all, "desk") || strings.Contains(all, "robotics") || strings.Contains(all, said) {
				t.Errorf("the service name is missing, or the text of the conversation is sent:\n%s", all)
			}
			if strings.Contains(r.err.String(), "cherry") {
				t.Errorf("the log shows a header:\n%s", r.err.String())
			}
		})
	}
}

// invited asks the text agent for a voice session, below its own span, and returns the ticket.
func (r *running) invited() (ticket string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.addr+"/v1/chat", strings.NewReader(`{"message":"Start a voice session and when is the robotics lab open?","user":"ada"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.key())
	req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var m struct {
			Type   string `json:"type"`
			Ticket string `json:"ticket"`
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &m) == nil && m.Ticket != "" {
			ticket = m.Ticket
		}
	}
	if ticket == "" {
		r.t.Fatal("there is no ticket")
	}
	return ticket
}

// speaksOnWith talks with a ticket until a turn is over, hangs up, and returns the model's text.
func (r *running) speaksOnWith(ticket string) (said string) {
	r.t.Helper()
	conn, err := protocol.Dial(r.t.Context(), "ws://"+r.addr+"/v1/voice", protocol.DialOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Abort()
	send := func(m protocol.ClientMessage) {
		data, err := protocol.EncodeClient(m)
		if err == nil {
			err = conn.WriteText(data)
		}
		if err != nil {
			r.t.Error(err)
		}
	}
	send(&protocol.Start{Ticket: ticket, InputRate: 16000, OutputRate: 24000})
	said = "nothing at all"
	for {
		f, err := conn.Read()
		if err != nil {
			return said
		}
		if f.Audio {
			continue
		}
		m, err := protocol.ParseServer(f.Data)
		if err != nil {
			r.t.Error(err)
		}
		switch m := m.(type) {
		case *protocol.AudioEnd:
			send(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
		case *protocol.Transcript:
			if m.Role == "assistant" && m.Final {
				said = m.Text
			}
		case *protocol.TurnEnded:
			send(&protocol.End{})
		}
	}
}

// TestWrongTraces: the start reports mistakes in the settings and the standard variables, without showing a secret.
func TestWrongTraces(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		sets    []string
		want    string
	}{
		"endpoint":  {nil, []string{"traces.endpoint=collector:4318"}, "traces.endpoint must be a whole URL"},
		"a user":    {nil, []string{"traces.endpoint=https://ada:cherry@collector:4318"}, "traces.endpoint has a user or a password"},
		"a path":    {nil, []string{"traces.protocol=grpc", "traces.endpoint=http://collector:4317/v1/traces"}, "traces.endpoint has a path"},
		"protocol":  {nil, []string{"traces.protocol=udp"}, "traces.protocol must be one of auto, http, grpc"},
		"ratio":     {nil, []string{"traces.ratio=1.5"}, "traces.ratio must be from 0 to 1"},
		"slow":      {nil, []string{"traces.slow=0s"}, "traces.slow must be from 10ms to 1m"},
		"headers":   {nil, []string{"traces.headers=cherry"}, "traces.headers must be name=value"},
		"variables": {[]string{"OTEL_EXPORTER_OTLP_HEADERS=cherry"}, nil, "OTEL_EXPORTER_OTLP_HEADERS must be name=value"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--set", "traces.enabled=true"}
			for _, s := range c.sets {
				args = append(args, "--set", s)
			}
			var out, err console
			code := Run(t.Context(), Process{Args: args, Stdin: strings.NewReader(""), Host: server.Host{Environ: c.environ, Stdout: &out, Stderr: &err}})
			if code != 2 || !strings.Contains(err.String(), c.want) || strings.Contains(err.String(), "cherry") {
				t.Errorf("exit code %d:\n%s", code, err.String())
			}
		})
	}
}

// TestTracesAreOff: without the setting, or with OTEL_SDK_DISABLED, nothing is sent, whatever the other variables say.
func TestTracesAreOff(t *testing.T) {
	c := testutil.OpenCollector(t)
	for _, enabled := range []string{"false", "true"} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.HTTP)
		r := startIn(t, []string{"OTEL_SDK_DISABLED=" + enabled}, "--sim", "always", "--set", "traces.enabled="+enabled, "--set", "traces.ratio=1")
		_ = r.invited()
		r.signals <- syscall.SIGTERM
		if code := r.ended(); code != 0 {
			t.Errorf("the exit code is %d", code)
		}
	}
	if n := len(c.Spans()); n != 0 {
		t.Errorf("%d spans were sent", n)
	}
}

package live

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"voicegw/internal/livewire"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// TestEnds: each reason of session.closed has its kind, an earlier error can determine it, and the last seconds are
// reported before the end.
func TestEnds(t *testing.T) {
	for reason, want := range map[string]transport.Kind{
		livewire.ReasonExpired: transport.KindExpired, livewire.ReasonContent: transport.KindFiltered,
		livewire.ReasonHangup: transport.KindRetry, livewire.ReasonLost: transport.KindRetry, "tea_time": transport.KindRetry,
		"credit": transport.KindQuota,
	} {
		s := newServer(t)
		conn, p := s.connect(transport.Setup{})
		if reason == "credit" {
			p.send(`{"type":"error","error":{"code":"credit_balance_exhausted","message":"empty"}}`)
		}
		p.send(`{"type":"session.usage.updated","usage":{"seconds":40}}`)
		p.send(`{"type":"session.closed","reason":%q,"usage":{"seconds":61.2}}`, reason)
		var seconds int64
		for {
			ev, err := conn.Recv(context.Background())
			if err != nil {
				if transport.KindOf(err) != want {
					t.Errorf("%s: %v, want %s", reason, err, want)
				}
				break
			}
			if u, ok := ev.(transport.Usage); ok {
				seconds += u.Tokens.Seconds
			}
		}
		if seconds != 62 {
			t.Errorf("%s: %d seconds were reported, want 62", reason, seconds)
		}
	}
}

// TestCloseReportsTheSeconds: Close reports the seconds of audio that no usage event has counted.
func TestCloseReportsTheSeconds(t *testing.T) {
	s := newServer(t)
	conn, _ := s.connect(transport.Setup{})
	if err := conn.Send(context.Background(), &transport.AudioIn{PCM: make([]byte, 5*48000-2)}); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	ev, err := conn.Recv(context.Background())
	if u, ok := ev.(transport.Usage); !ok || err != nil || u.Tokens.Seconds != 5 {
		t.Errorf("Recv after Close: %+v, %v", ev, err)
	}
	if _, err = conn.Recv(context.Background()); transport.KindOf(err) != transport.KindClosed {
		t.Errorf("then: %v", err)
	}
}

// TestRefusedStart: an error before session.started is the error of Connect.
func TestRefusedStart(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct {
		setup transport.Setup
		want  string
	}{
		{transport.Setup{Instructions: strings.Repeat("word ", 20000)}, "shorten"},
	} {
		if _, err := s.tr.Connect(context.Background(), c.setup); transport.KindOf(err) != transport.KindInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Connect: %v, want %s", err, c.want)
		}
	}
	s.tr.text.Store(nil)
	if _, err := s.tr.Connect(context.Background(), transport.Setup{}); err == nil || !strings.Contains(err.Error(), "chat.base_url") {
		t.Errorf("without a text model: %v", err)
	}
}

// TestHistoryFits: a long history is cut at its beginning, and its first message says so.
func TestHistoryFits(t *testing.T) {
	setup := transport.Setup{Reanchor: "Go on."}
	for range 200 {
		setup.History = append(setup.History, transport.PastUser{Text: strings.Repeat("word ", 30)})
	}
	for name, past := range map[string][]transport.Past{
		"many": setup.History, "one": {transport.PastNote{Text: strings.Repeat("word ", 9000)}}, "empty": {transport.PastUser{}},
	} {
		setup.History = past
		tokens, list := 0, history(setup)
		for _, m := range list {
			tokens += m.Tokens()
		}
		if tokens > historyTokens || len(list) > livewire.MaxMessages || list[len(list)-1].Text() != "Go on." {
			t.Errorf("%s: %d messages of %d tokens, the last is %q", name, len(list), tokens, list[len(list)-1].Text())
		}
		if name == "many" && !strings.Contains(list[0].Text(), "are missing here") {
			t.Errorf("the first message does not mention the cut: %q", list[0].Text())
		}
	}
	short := transport.Setup{History: []transport.Past{transport.PastUser{Text: "hi"}}}
	if list := history(short); len(list) != 1 || list[0].Role != "user" {
		t.Errorf("a short history is %+v", list)
	}
}

// TestSilenceFlows: without audio from the client, the model gets silence in real time.
func TestSilenceFlows(t *testing.T) {
	s := newServer(t)
	conn, _ := s.connect(transport.Setup{})
	began := time.Now()
	testutil.WaitUntil(t, "half a second of silence", func() bool { return conn.Conn.(*liveConn).feed.sent.Load() >= 24000 })
	if took := time.Since(began); took < 350*time.Millisecond {
		t.Errorf("half a second of silence took %v", took)
	}
}

// TestAddresses: each form of base URL has its address; bad options are refused.
func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"":                                    "wss://api.openai.com/v1/live/sessions",
		"https://api.openai.com/v1/":          "wss://api.openai.com/v1/live/sessions",
		"https://me.openai.azure.com":         "wss://me.openai.azure.com/openai/v1/live/sessions",
		"https://x.example/openai/v1":         "wss://x.example/openai/v1/live/sessions",
		"http://127.0.0.1:1/v1/live/sessions": "ws://127.0.0.1:1/v1/live/sessions",
	} {
		tr, err := New(transport.Provider{APIKey: "k", BaseURL: base})
		if err != nil || tr.url != want {
			t.Errorf("%q is %v, %v, want %s", base, tr, err, want)
		}
	}
	for _, o := range []transport.Provider{{}, {APIKey: "a b"}, {APIKey: "k", BaseURL: "ftp://x"}, {APIKey: "k", BaseURL: "https://me.openai.azure.com?api-version=1"}} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "live: Options.") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	tr, _ := New(transport.Provider{APIKey: "k"})
	if tr.Refuses("gpt-live-1") || !tr.Refuses("gpt-realtime-2.1") || tr.Voices("")[0] != "marin" || len(tr.Voices("")) != len(livewire.Voices) {
		t.Error("models or voices are wrong")
	}
}

// TestAudioAllocatesNothing counts the allocations of both directions: speech, silence, and the client's audio.
func TestAudioAllocatesNothing(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the race detector allocates")
	}
	d := newConn(&Transport{}, transport.Setup{})
	d.delegations = &delegations{}
	loudFrame := []byte(`{"type":"session.output_audio.delta","delta":"` + base64.StdEncoding.EncodeToString(piece(100, true)) + `"}`)
	quietFrame := []byte(`{"type":"session.output_audio.delta","delta":"` + base64.StdEncoding.EncodeToString(piece(100, false)) + `"}`)
	noise := piece(100, false)
	for i := 0; i < len(noise); i += 2 {
		noise[i] = 9
	}
	noiseFrame := []byte(`{"type":"session.output_audio.delta","delta":"` + base64.StdEncoding.EncodeToString(noise) + `"}`)
	take := func(frame []byte) func() {
		return func() {
			d.take(frame)
			for ev := d.dialog.Next(); ev != nil; ev = d.dialog.Next() {
				_ = ev
			}
		}
	}
	for _, step := range []struct {
		name  string
		frame []byte
	}{{"silence", quietFrame}, {"noise", noiseFrame}, {"speech", loudFrame}} {
		for range 50 {
			take(step.frame)()
		}
		if n := testing.AllocsPerRun(200, take(step.frame)); n != 0 {
			t.Errorf("%s allocates %v times a frame", step.name, n)
		}
	}
	s := newServer(t)
	s.discards = true
	conn, _ := s.connect(transport.Setup{})
	in := &transport.AudioIn{PCM: make([]byte, 960)}
	send := func() {
		if err := conn.Conn.Send(context.Background(), in); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		send()
	}
	if n := testing.AllocsPerRun(1000, send); n != 0 {
		t.Errorf("the client's audio allocates %v times a frame", n)
	}
}

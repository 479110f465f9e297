package gemini

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

func mustScenario(t *testing.T, yaml string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustFaults(t *testing.T, yaml string) *scenario.FaultScript {
	t.Helper()
	s, err := scenario.ParseFaults("test", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sayLong = `
rules:
  - when: {text: any}
    do:
      - say: The answer has to be long enough that its audio lasts for several seconds when it is played.
  - when: {utterance: any}
    do:
      - say: I heard you.
`

// audioOf is the audio of frames, and the sizes of its pieces.
func audioOf(t *testing.T, frames []received) (pcm []byte, sizes []int) {
	t.Helper()
	for _, f := range frames {
		var m serverFrame
		if err := json.Unmarshal(f.raw, &m); err != nil {
			t.Fatal(err)
		}
		if m.ServerContent == nil || m.ServerContent.ModelTurn == nil {
			continue
		}
		for _, p := range m.ServerContent.ModelTurn.Parts {
			if p.InlineData == nil {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(p.InlineData.Data)
			if err != nil {
				t.Fatal(err)
			}
			pcm, sizes = append(pcm, b...), append(sizes, len(b))
		}
	}
	return pcm, sizes
}

func find(frames []received, want string) received {
	for _, f := range frames {
		if strings.HasPrefix(name(f), want) {
			return f
		}
	}
	return received{}
}

// TestTurnCompleteWaitsForPlayback: audio is sent faster than it plays, and turnComplete follows when a player in real
// time has finished.
func TestTurnCompleteWaitsForPlayback(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options wire.Options
		factor  float64 // of the audio's length, from first audio to turnComplete
	}{
		{"real time", wire.Options{}, 1},
		{"a fast player", wire.Options{PlaybackSpeed: 10}, 0.25}, // generation at 4 times real time takes longer
		{"no player", wire.Options{PlaybackSpeed: -1}, 0.25},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.options.Scenario = mustScenario(t, sayLong)
				c := newBench(t, tt.options).open(setupFor(model31, ""))
				sent := time.Now()
				c.send(typed("go"))
				frames := c.untilTurn()
				pcm, sizes := audioOf(t, frames)
				length := audio.Duration(outputRate, len(pcm))
				first, done := find(frames, "speech").at, find(frames, "turnComplete").at
				if d := first.Sub(sent); d != 200*time.Millisecond {
					t.Errorf("first audio after %v", d)
				}
				want := time.Duration(float64(length) * tt.factor)
				if d := done.Sub(first); d < want-300*time.Millisecond || d > want+300*time.Millisecond {
					t.Errorf("turnComplete %v after the first of %v of audio, want about %v", d, length, want)
				}
				if g := find(frames, "generationComplete").at.Sub(first); g > length/3 {
					t.Errorf("generation took %v for %v of audio", g, length)
				}
				if sizes[0] != 190*48 {
					t.Errorf("chunks of %d bytes", sizes[0])
				}
			})
		})
	}
}

// TestChunks: the usual length of a chunk by model, and the option that changes it.
func TestChunks(t *testing.T) {
	for model, ms := range map[string]int{model25: 60, model31: 190, model38: 160} {
		synctest.Test(t, func(t *testing.T) {
			c := newBench(t, wire.Options{}).open(setupFor(model, ""))
			c.send(typed("go"))
			_, sizes := audioOf(t, c.untilTurn())
			if sizes[0] != ms*48 {
				t.Errorf("%s: chunks of %d bytes, want %d ms", model, sizes[0], ms)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, wire.Options{ChunkMS: 20, FirstAudioMS: -1, Speed: -1, PlaybackSpeed: -1}).open(setupFor(model25, ""))
		sent := time.Now()
		c.send(typed("go"))
		frames := c.untilTurn()
		if _, sizes := audioOf(t, frames); sizes[0] != 20*48 {
			t.Errorf("chunks of %d bytes, want 20 ms", sizes[0])
		}
		if d := frames[len(frames)-1].at.Sub(sent); d != 0 {
			t.Errorf("with every speed unlimited the turn took %v", d)
		}
	})
}

// TestFirstAudioDelayIsPaidOnce: a second line of the same answer follows at once.
func TestFirstAudioDelayIsPaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := wire.Options{FirstAudioMS: 5000, Speed: -1, Scenario: mustScenario(t, `
otherwise:
  - say: One.
  - say: Two.
  - wait: 1s
  - say: Three.
`), PlaybackSpeed: -1}
		c := newBench(t, o).open(setupFor(model25, ""))
		sent := time.Now()
		c.send(typed("go"))
		frames := c.untilTurn()
		if d := frames[len(frames)-1].at.Sub(sent); d != 6*time.Second {
			t.Errorf("the answer took %v, want the delay of 5s and the wait of 1s", d)
		}
		if text := said(frames); !strings.Contains(text, "One.") || !strings.Contains(text, "Three.") {
			t.Errorf("the transcript is %q", text)
		}
	})
}

func life(d time.Duration, o wire.Options) wire.Options {
	o.ConnectionLife = d
	return o
}

// TestLifetimes: the ends of connections and sessions.
func TestLifetimes(t *testing.T) {
	resumable := `"sessionResumption":{}`
	tests := []struct {
		name    string
		options wire.Options
		setup   string
		goAway  time.Duration // 0: none
		closed  time.Duration
		code    int
	}{
		{"measured", wire.Options{}, setupFor(model25, ""), 9 * time.Minute, 9*time.Minute + 50400*time.Millisecond, 1008},
		{"3.8", wire.Options{}, setupFor(model38, ""), 0, 58 * time.Minute, 1011},
		{"options", wire.Options{GoAwayAfter: 10 * time.Second, GoAwayLeft: 2 * time.Second}, setupFor(model38, ""), 10 * time.Second, 12400 * time.Millisecond, 1008},
		{"an announcement without a time", wire.Options{GoAwayAfter: 10 * time.Second, GoAwayLeft: -1}, setupFor(model31, ""), 10 * time.Second, 10400 * time.Millisecond, 1008},
		{"an announcement long before", wire.Options{GoAwayAfter: time.Minute, GoAwayLeft: 300 * time.Second}, setupFor(model31, ""), time.Minute, 6*time.Minute + 400*time.Millisecond, 1008},
		{"a short life", life(20*time.Second, wire.Options{}), setupFor(model31, ""), 15 * time.Second, 20400 * time.Millisecond, 1008},
		{"a short life, announced early", life(20*time.Second, wire.Options{GoAwayLeft: 12 * time.Second}), setupFor(model31, ""), 8 * time.Second, 20400 * time.Millisecond, 1008},
		{"a short life, announced at once", life(20*time.Second, wire.Options{GoAwayLeft: time.Minute}), setupFor(model31, ""), time.Nanosecond, 20400 * time.Millisecond, 1008},
		{"a short life, announced at a time", life(20*time.Second, wire.Options{GoAwayAfter: 18 * time.Second}), setupFor(model38, ""), 18 * time.Second, 20400 * time.Millisecond, 1008},
		{"a long life", life(20*time.Minute, wire.Options{}), setupFor(model38, `"contextWindowCompression":{"slidingWindow":{}}`), 0, 20 * time.Minute, 1011},
		{"a short life of 3.8", life(5*time.Second, wire.Options{}), setupFor(model38, ""), 0, 5 * time.Second, 1011},
		{"a silent end", life(5*time.Second, wire.Options{GoAwayAfter: -1}), setupFor(model25, ""), 0, 5 * time.Second, 1011},
		{"session", wire.Options{GoAwayAfter: -1}, setupFor(model25, resumable), 14*time.Minute + 10*time.Second, 15 * time.Minute, 1008},
		{"session by option", wire.Options{GoAwayAfter: -1, SessionLife: 5 * time.Second}, setupFor(model25, ""), time.Nanosecond, 5 * time.Second, 1008},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBench(t, tt.options).open(tt.setup)
				began := time.Now()
				if tt.goAway > 0 {
					f := c.next()
					for f.key() == "sessionResumptionUpdate" {
						f = c.next()
					}
					if f.key() != "goAway" {
						t.Fatalf("got %s, want goAway", f.raw)
					}
					if d := f.at.Sub(began); d > tt.goAway || d < tt.goAway-time.Microsecond {
						t.Errorf("goAway after %v, want %v", d, tt.goAway)
					}
				}
				e := c.closed()
				if d := time.Since(began); d != tt.closed || int(e.Code) != tt.code {
					t.Errorf("closed %d %q after %v, want %d after %v", e.Code, e.Reason, d, tt.code, tt.closed)
				}
			})
		})
	}
	t.Run("a connection without an end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newBench(t, life(-1, wire.Options{})).open(setupFor(model31, `"contextWindowCompression":{"slidingWindow":{}}`))
			p := startPump(c)
			defer p.stop()
			for {
				select {
				case f, open := <-p.frames:
					if !open || f.key() != "sessionResumptionUpdate" {
						t.Fatalf("got %s, %v", f.raw, p.err)
					}
				case <-time.After(3 * time.Hour):
					return
				}
			}
		})
	})
	t.Run("compressed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newBench(t, wire.Options{GoAwayAfter: -1}).open(setupFor(model25, `"contextWindowCompression":{"slidingWindow":{}}`))
			p := startPump(c)
			defer p.stop()
			select {
			case f := <-p.frames:
				t.Errorf("with compression the session has no end; got %s", f.raw)
			case <-time.After(2 * time.Hour):
			}
		})
	})
}

func TestQuotaShowsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, wire.Options{}).dial(betaPath+"?key=quota", nil)
		c.send(setupFor(model25, ""))
		c.next()
		began := time.Now()
		if e := c.closed(); e.Code != 1011 || time.Since(began) != 800*time.Millisecond {
			t.Errorf("closed %d after %v", e.Code, time.Since(began))
		}
	})
}

// TestResumeWhileOpen: the old socket must be closed first.
func TestResumeWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{})
		first := b.open(setupFor(model25, `"sessionResumption":{}`))
		first.send(typed("hi"))
		first.untilTurn()
		handle, _ := first.next().val["sessionResumptionUpdate"].(map[string]any)["newHandle"].(string)
		again := setupFor(model25, `"sessionResumption":{"handle":"`+handle+`"}`)

		second := b.dial(betaPath+"?key=k", nil)
		second.send(again)
		if e := second.closed(); e.Code != 1011 {
			t.Errorf("while the first socket is open: closed %d %q, want 1011", e.Code, e.Reason)
		}
		if err := first.ws.Close(1000, ""); err != nil {
			t.Error(err)
		}
		synctest.Wait()

		other := b.dial(betaPath+"?key=k", nil)
		other.send(setupFor(model31, `"sessionResumption":{"handle":"`+handle+`"}`))
		if e := other.closed(); e.Code != 1007 {
			t.Errorf("with another model: closed %d %q, want 1007", e.Code, e.Reason)
		}
		b.open(again)
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{GoAwayAfter: -1, SessionLife: -1})
		c := b.open(setupFor(model25, `"sessionResumption":{}`))
		c.send(typed("hi"))
		c.untilTurn()
		handle, _ := c.next().val["sessionResumptionUpdate"].(map[string]any)["newHandle"].(string)
		if err := c.ws.Close(1000, ""); err != nil {
			t.Error(err)
		}
		<-time.After(2*time.Hour + time.Second)
		late := b.dial(betaPath+"?key=k", nil)
		late.send(setupFor(model25, `"sessionResumption":{"handle":"`+handle+`"}`))
		if e := late.closed(); e.Code != 1008 || e.Reason != reasonSessionNotFound {
			t.Errorf("after two hours: closed %d %q, want 1008", e.Code, e.Reason)
		}
	})
}

// TestCloseEndsConnections: Close ends open connections in any state, and refuses later ones.
func TestCloseEndsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{})
		talking := b.open(setupFor(model25, ""))
		talking.send(typed("hi"))
		idle := b.dial(betaPath+"?key=k", nil)
		var codes [2]int
		done := make(chan struct{})
		go func() {
			defer close(done)
			codes[0] = int(talking.closed().Code)
			codes[1] = int(idle.closed().Code)
		}()
		synctest.Wait()
		if err := b.h.opts.Group.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		<-done
		if codes != [2]int{1001, 1001} {
			t.Errorf("closed %v, want 1001 both", codes)
		}
		if n := b.h.opts.Stats.Open.Load(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		resp, err := b.http.Get("http://sim" + betaPath + "?key=k")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 503 {
			t.Errorf("after Close: %s", resp.Status)
		}
	})
}

// TestFaultsAtConnect: faults before a WebSocket exists.
func TestFaultsAtConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{Faults: mustFaults(t, `
faults:
  - {at: connect, connection: 1, do: delay, for: 3s}
  - {at: connect, connection: 2, do: quota}
  - {at: connect, connection: 3, do: drop}
  - {at: connect, connection: 4, do: close, code: 1013, reason: later}
  - {at: setup, connection: 5, do: silence}
`)})
		began := time.Now()
		b.open(setupFor(model25, ""))
		if d := time.Since(began); d != 3*time.Second {
			t.Errorf("the handshake took %v", d)
		}
		get := func() (int, error) {
			resp, err := b.http.Get("http://sim" + betaPath + "?key=k")
			if err != nil {
				return 0, err
			}
			return resp.StatusCode, resp.Body.Close()
		}
		if code, err := get(); code != 429 || err != nil {
			t.Errorf("quota: %d, %v", code, err)
		}
		if code, err := get(); err == nil {
			t.Errorf("drop: answered %d", code)
		}
		if e := b.dial(betaPath+"?key=k", nil).closed(); e.Code != 1013 || e.Reason != "later" {
			t.Errorf("close: %d %q", e.Code, e.Reason)
		}
		silent := b.dial(betaPath+"?key=k", nil)
		silent.send(setupFor(model25, ""))
		if f, err := silent.read(time.Minute); err == nil {
			t.Errorf("silence: got %s", f.raw)
		}
	})
}

// TestManyConnections: conversations are independent, and none remains.
func TestManyConnections(t *testing.T) {
	const clients = 40
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wire.Options{Scenario: mustScenario(t, `
rules:
  - when: {utterance: any}
    do: [{say: One.}]
  - when: {text: any}
    do: [{say: "${text}"}]
`)})
		var all sync.WaitGroup
		for i := range clients {
			c := b.open(setupFor([]string{model25, model31}[i%2], ""))
			all.Go(func() {
				for turn := range 3 {
					text := fmt.Sprintf("number %d of %d", turn, i)
					c.send(typed(text))
					if got := said(c.untilTurn()); got != text && !strings.HasSuffix(got, text) {
						t.Errorf("client %d: the transcript is %q, want %q", i, got, text)
					}
				}
				_ = c.ws.Close(1000, "")
			})
		}
		all.Wait()
		synctest.Wait()
		if n := b.h.opts.Stats.Open.Load(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		if n := b.h.opts.Stats.Responses.Load(); n != 3*clients {
			t.Errorf("%d responses, want %d", n, 3*clients)
		}
	})
}

package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/auth"
	"voicegw/protocol"
	"voicegw/transport"
)

// manualStart begins a session whose client reports when its user speaks.
const manualStart = `{"type":"session.start","input_rate":16000,"output_rate":24000,"turn_detection":"client"}`

// TestFloods: a client that keeps sending too fast, valid or not, is closed with 4029; it gets few errors, and the
// model hears little of it.
func TestFloods(t *testing.T) {
	text := func(s string) protocol.Frame { return protocol.Frame{Data: []byte(s)} }
	for name, f := range map[string]protocol.Frame{
		"ping":                 text(`{"type":"ping","t":1}`),
		"playback":             text(`{"type":"playback","item_id":"a1","played_ms":10}`),
		"interrupt":            text(`{"type":"interrupt"}`),
		"input.activity":       text(`{"type":"input.activity","active":true}`),
		"input.text":           text(`{"type":"input.text","text":"Hello"}`),
		"confirmation":         text(`{"type":"confirmation.resolve","token":"cf_x","approved":true}`),
		"unknown type":         text(`{"type":"hello"}`),
		"no JSON":              text(`hello`),
		"empty text":           text(``),
		"second start":         text(startText),
		"empty audio":          {Audio: true},
		"half a sample":        {Audio: true, Data: []byte{1}},
		"too long a frame":     {Audio: true, Data: make([]byte, 40_000)},
		"faster than speech":   {Audio: true, Data: make([]byte, 16_000)},
		"ping, a bit too fast": text(`{"type":"ping","t":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c := st.connect(manualStart)
				model := st.fake.Accept(t)
				synctest.Wait()
				gap := time.Duration(0)
				switch name {
				case "ping, a bit too fast":
					gap = time.Second / (controlRate + 10)
				case "faster than speech":
					gap = 100 * time.Millisecond
				}
				sent := 0
				for ; !c.isOver() && sent < 20_000; sent++ {
					c.in <- f.Input()
					if gap > 0 {
						pass(gap)
					}
					if sent%100 == 0 {
						synctest.Wait()
					}
				}
				pass(3 * time.Second)
				synctest.Wait()
				c.onlyTheEnd(t, protocol.CodeFlooding)
				c.ended(t, protocol.CloseLimit)
				if n := len(errorsIn(c.log())); n > floodErrors+1 {
					t.Errorf("%d errors answered the flood of %d", n, sent)
				}
				if n := len(model.Commands()); n > controlBurst {
					t.Errorf("the model got %d commands", n)
				}
			})
		})
	}
}

// TestOutageIsNoFlood: a client sends at once its messages from half a minute without a network, and the session
// continues.
func TestOutageIsNoFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		for range 3 {
			for i := range 30 * 50 {
				c.speak(make([]byte, 640))
				if i%10 == 0 && i/10 < 30*5 {
					c.say(`{"type":"playback","item_id":"a1","played_ms":10}`)
				}
				if i%500 == 0 {
					c.say(fmt.Sprintf(`{"type":"ping","t":%d}`, i))
				}
			}
			synctest.Wait()
			pass(30 * time.Second)
		}
		synctest.Wait()
		if c.isOver() {
			t.Fatalf("the session has ended:\n%s", strings.Join(c.log(), "\n"))
		}
		if n := strings.Count(strings.Join(c.log(), "\n"), "pong"); n != 9 {
			t.Errorf("%d of 9 pings were answered", n)
		}
	})
}

// TestBacklogIsBoundedInBytes: data for a client that does not read is bounded, and the client is disconnected as too
// slow.
func TestBacklogIsBoundedInBytes(t *testing.T) {
	const bound = 1 << 20
	long := strings.Repeat("word ", 10_000)
	for name, events := range map[string]func(i int) []transport.Event{
		"transcripts": func(i int) []transport.Event {
			return []transport.Event{transport.Transcript{Item: fmt.Sprint("a", i), Role: transport.RoleAssistant, Text: long}}
		},
		"one transcript": func(i int) []transport.Event {
			return []transport.Event{transport.Transcript{Item: "a", Role: transport.RoleAssistant, Text: long, Final: true}}
		},
		"calls": func(i int) []transport.Event {
			return []transport.Event{transport.ToolCall{Call: fmt.Sprint("c", i), Name: long[:1000], Args: json.RawMessage(`{}`)}}
		},
		"items": func(i int) []transport.Event {
			item := fmt.Sprint("a", i)
			return []transport.Event{&transport.AudioOut{Item: item, PCM: make([]byte, 480)}, transport.AudioDone{Item: item}}
		},
		"tiny audio": func(i int) []transport.Event {
			var all []transport.Event
			for range 100 {
				all = append(all, &transport.AudioOut{Item: "a", PCM: make([]byte, 20)})
			}
			return all
		},
		"large audio": func(i int) []transport.Event {
			return []transport.Event{&transport.AudioOut{Item: "a", PCM: make([]byte, 48_000)}}
		},
	} {
		for _, inspect := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inspect %t", name, inspect), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStage(t, hearing, func(o *Options) { o.Limits.BacklogBytes = bound })
					a, err := st.m.Admit(someone, Coming{})
					if err != nil {
						t.Fatal(err)
					}
					a.Principal.Scopes = auth.ScopeInspect
					c := newTestClient()
					c.say(strings.Replace(startText, "}", fmt.Sprintf(`,"inspect":%t}`, inspect), 1))
					st.m.Start(a, c)
					model := st.fake.Accept(t)
					synctest.Wait()
					s := st.only()
					c.stallWrites()
					model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
					most := 0
					for i := 0; i < 20_000 && !s.isOver(); i++ {
						model.Emit(events(i)...)
						synctest.Wait()
						most = max(most, peek(&s.down, "bytes"))
					}
					if !s.isOver() || s.cause() != causeSlow {
						t.Errorf("the session did not end because of a slow client; %d bytes wait", most)
					}
					t.Logf("%d KiB were held at most", most>>10)
					if limit := bound + 3*len(long); most > limit { // plus the entry over the limit, in a buffer with spare room
						t.Errorf("%d bytes were held, more than %d", most, limit)
					}
					pass(time.Minute)
				})
			})
		}
	}
}

// only returns the one running session. A client may get session.started before the manager knows the session, so this
// waits for all goroutines.
func (st *stage) only() *session {
	st.t.Helper()
	synctest.Wait()
	st.m.roster.mu.Lock()
	defer st.m.roster.mu.Unlock()
	for _, s := range st.m.roster.sessions {
		if s != nil {
			return s
		}
	}
	st.t.Fatal("no session runs")
	return nil
}

// TestTinyAudioWaitsInLargeFrames: audio in pieces of one sample takes no more memory than in large pieces.
func TestTinyAudioWaitsInLargeFrames(t *testing.T) {
	u := newUplink(160_000, 3200, nil)
	for range 200_000 {
		u.pushAudio([]byte{1, 2}, false)
	}
	n := 0
	for _, e := range u.entries {
		n += cap(e.frame.PCM)
	}
	t.Logf("%d KiB are held for %d KiB of audio", n>>10, u.audio>>10)
	if n > 4*160_000 || u.audio > 160_000 {
		t.Errorf("%d bytes are held for %d bytes of audio", n, u.audio)
	}
}

// TestCommandsAreBoundedInBytes: a model that reads nothing is disconnected before large results fill the memory.
func TestCommandsAreBoundedInBytes(t *testing.T) {
	u := newUplink(160_000, 3200, nil)
	result := transport.ToolResult{Output: make(json.RawMessage, 1<<20)}
	n := 1
	for u.pushCommand(result, nil) {
		n++
	}
	if n > maxCommandBytes>>20+1 {
		t.Errorf("%d results of 1 MiB were accepted", n)
	}
}

// TestLongTranscript: the client gets the complete text at the end, and each version of a short one; the sent bytes
// grow with the length, not with its square.
func TestLongTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"})
		text := strings.Repeat("word ", 8000)
		for n := 5; n <= len(text); n += 5 {
			model.Emit(transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: text[:n]})
		}
		model.Emit(transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: text, Final: true})
		synctest.Wait()
		received, all := 0, 0
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range c.texts {
			if m["type"] == "transcript" {
				received++
				all += len(m["text"].(string))
			}
		}
		last := c.texts[len(c.texts)-1]
		if last["text"] != text || last["final"] != true {
			t.Error("the last transcript is not complete")
		}
		t.Logf("%d of 8001 were sent, with %d bytes for %d", received, all, len(text))
		if received < 100 || all > 200*len(text) {
			t.Errorf("%d transcripts were sent, with %d bytes for %d", received, all, len(text))
		}
	})
}

// TestHugeCallEnds: a tool call with too large arguments ends the session, and the log has a line.
func TestHugeCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{}, transport.ResponseStarted{ID: "r1"},
			transport.ToolCall{Call: "c1", Name: "x", Args: make(json.RawMessage, maxArgs+1)})
		synctest.Wait()
		pass(time.Second)
		c.expect(t, "error provider_lost", "session.ended provider_lost")
		c.ended(t, protocol.CloseProviderLost)
	})
}

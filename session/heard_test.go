package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/transport"
)

// announcing is a model that announces interruptions and takes no report of played audio.
var announcing = transport.Capabilities{InterruptNotice: true, ToolCancelNotice: true}

// second is a second of the model's speech, at the client's rate.
const second = 48000

// speaks makes the model say a complete item of the given size.
func speaks(model *fakeConn, item string, bytes int) {
	for n := 0; n < bytes; n += 4800 {
		model.EmitAudio(item, make([]byte, min(4800, bytes-n)))
	}
	model.Emit(transport.AudioDone{Item: item})
	synctest.Wait()
}

// TestFlushesOfManyItems: for any interruption, nothing of an item follows its flush, no item has both an end and a
// flush, an end has the number of sent bytes, the model learns of no more than was sent, and older speech does not
// begin after the interruption.
func TestFlushesOfManyItems(t *testing.T) {
	for seed := range uint64(60) {
		for name, caps := range map[string]transport.Capabilities{"hearing": hearing, "announcing": announcing} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStage(t, caps, nil)
					c, model := st.started()
					synctest.Wait()
					g := &babble{rng: rand.New(rand.NewPCG(seed, 9)), c: c, model: model, bornAt: map[string]int{}}
					for range 40 {
						g.act(t)
						synctest.Wait()
					}
					g.run()
					c.say(`{"type":"session.end"}`)
					synctest.Wait()
					g.check(t)
				})
			})
		}
	}
}

// babble is a model that says one item after another, and is interrupted.
type babble struct {
	rng     *rand.Rand
	c       *testClient
	model   *fakeConn
	items   int
	open    string
	stalled bool
	bornAt  map[string]int // number of interruptions before an item began
	cuts    []int          // length of the client's log at each interruption
}

func (g *babble) act(t *testing.T) {
	switch n := g.rng.IntN(12); {
	case n < 5:
		if g.open == "" {
			g.items++
			g.open = fmt.Sprint("item", g.items)
			g.bornAt[g.open] = len(g.cuts)
			if g.items == 1 || g.rng.IntN(3) == 0 {
				g.model.Emit(transport.InputCommitted{Item: "u" + g.open}, transport.ResponseStarted{ID: "r" + g.open})
			}
		}
		g.model.EmitAudio(g.open, make([]byte, 2*(1+g.rng.IntN(second))))
	case n < 7 && g.open != "":
		g.model.Emit(transport.AudioDone{Item: g.open})
		g.open = ""
	case n < 8 && !g.stalled:
		g.c.stallWrites()
		g.stalled = true
	case n < 9:
		g.run()
	case n < 10:
		pass(time.Duration(g.rng.IntN(3000)) * time.Millisecond)
	case n < 11 && g.items > 0:
		g.c.say(fmt.Sprintf(`{"type":"playback","item_id":"item%d","played_ms":%d,"done":%t}`, 1+g.rng.IntN(g.items), g.rng.IntN(5000), g.rng.IntN(3) == 0))
	default:
		synctest.Wait()
		g.c.say([]string{`{"type":"interrupt"}`, `{"type":"input.text","text":"no"}`}[g.rng.IntN(2)])
		synctest.Wait()
		g.cuts = append(g.cuts, len(g.c.log()))
		g.open = ""
		g.model.Emit(transport.ResponseDone{ID: fmt.Sprint("ritem", g.items), Status: transport.ResponseInterrupted})
	}
}

// run lets a stalled client continue.
func (g *babble) run() {
	if g.stalled {
		g.c.mu.Lock()
		close(g.c.stall)
		g.c.stall = nil
		g.c.mu.Unlock()
		g.stalled = false
	}
	synctest.Wait()
}

// check checks the messages to the client and to the model.
func (g *babble) check(t *testing.T) {
	log := g.c.log()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(log, "\n"))
	}
	sent, over := map[string]int{}, map[string]string{}
	playing, ends := "", map[string]float64{}
	for _, m := range g.c.texts {
		if m["type"] == "audio.end" {
			ends[m["item_id"].(string)] = m["audio_ms"].(float64)
		}
	}
	for i, line := range log {
		kind, rest, _ := strings.Cut(line, " ")
		item, _, _ := strings.Cut(rest, " ")
		switch kind {
		case "audio.start":
			if _, again := sent[item]; again || over[item] != "" {
				fail("%s began twice", item)
			}
			if i+1 == len(log) || !strings.HasPrefix(log[i+1], "audio ") {
				fail("%s was announced without a byte of it", item)
			}
			playing, sent[item] = item, 0
		case "audio":
			n := 0
			fmt.Sscan(rest, &n)
			if playing == "" || over[playing] != "" {
				fail("line %d: audio of %q, which is over by %s", i, playing, over[playing])
			}
			sent[playing] += n
			born := g.bornAt[playing]
			// One entry may have been in transit at the interruption.
			if born < len(g.cuts) && i > g.cuts[born]+1 {
				fail("line %d: audio of %s, which was interrupted at line %d", i, playing, g.cuts[born])
			}
		case "audio.end", "audio.flush":
			if _, known := sent[item]; !known || over[item] != "" && (over[item] != "audio.end" || kind != "audio.flush") {
				fail("line %d: %s of %s, which has begun: %t; it was over by %q", i, kind, item, known, over[item])
			}
			over[item] = kind
			if ms := audio.MS(24000, sent[item]); kind == "audio.end" && ends[item] != float64(ms) {
				fail("audio.end of %s promises %v ms; %d were sent", item, ends[item], ms)
			}
		}
	}
	for _, cmd := range g.model.Commands() {
		if cut, ok := cmd.(transport.Truncate); ok && (cut.AudioMS < 0 || cut.AudioMS > audio.MS(24000, sent[cut.Item])) {
			fail("%s was truncated at %d ms; %d were sent", cut.Item, cut.AudioMS, audio.MS(24000, sent[cut.Item]))
		}
	}
}

// TestInterruptionFlushesQueue: the model speaks, calls a tool and speaks again; an interruption of the first item also
// flushes the second, and a model that supports it learns how much of both was heard.
func TestInterruptionFlushesQueue(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"hearing": hearing, "announcing": announcing} {
		for how, reason := range map[string]string{"speech": "user_speech", `{"type":"interrupt"}`: "user_stop", `{"type":"input.text","text":"no"}`: "user_text"} {
			t.Run(name+" "+reason, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStage(t, caps, nil)
					c, model := st.started()
					model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
					speaks(model, "a1", 5*second)
					speaks(model, "a2", second/2)
					model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
					// Longer than the second item and its allowance: it would end if both played at once.
					pass(3 * time.Second)
					synctest.Wait()
					switch {
					case how != "speech":
						c.say(how)
					case caps.InterruptNotice:
						model.Emit(transport.Interrupted{})
					default:
						model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 0})
					}
					synctest.Wait()
					c.expect(t, "audio.flush a1 "+reason, "audio.flush a2 "+reason)
					pass(time.Second)
					synctest.Wait()
					var cuts []transport.Truncate
					for _, cmd := range model.Commands() {
						if cut, ok := cmd.(transport.Truncate); ok {
							cuts = append(cuts, cut)
						}
					}
					want := []transport.Truncate{{Item: "a1", AudioMS: 3000}, {Item: "a2", AudioMS: 0}}
					if !caps.Truncate {
						want = nil
					}
					if !slices.Equal(cuts, want) {
						t.Errorf("the model got %+v, want %+v", cuts, want)
					}
				})
			})
		}
	}
}

// TestFarewellAfterLongSentence: a session ended by a tool closes when everything was heard: by the client's reports,
// however late, or else by the clock and its allowance.
func TestFarewellAfterLongSentence(t *testing.T) {
	for _, tool := range []string{"bye", "ban"} {
		for _, reports := range []bool{false, true} {
			t.Run(fmt.Sprint(tool, " reports ", reports), func(t *testing.T) {
				onStage(t, nil, func(t *testing.T, tl *till) {
					c, model := tl.talk()
					model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
					speaks(model, "sentence", 20*second)
					model.Emit(transport.ToolCall{Call: "m1", ID: "call_of_u1", Name: tool, Args: []byte(`{}`)},
						transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
					synctest.Wait()
					model.Emit(transport.ResponseStarted{ID: "r2"})
					speaks(model, "farewell", 3*second)
					model.Emit(transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
					synctest.Wait()
					if !reports {
						pass(25*time.Second - time.Millisecond)
						synctest.Wait()
						if c.isOver() {
							t.Fatal("a client that is two seconds late does not hear the farewell to its end")
						}
						pass(time.Millisecond)
					} else {
						pass(5 * time.Second) // the client begins late, and plays slowly
						c.say(`{"type":"playback","item_id":"sentence","played_ms":200}`)
						pass(25 * time.Second)
						c.say(`{"type":"playback","item_id":"sentence","played_ms":18000}`)
						pass(10 * time.Second)
						c.say(`{"type":"playback","item_id":"farewell","played_ms":2800}`)
						pass(11 * time.Second)
						synctest.Wait()
						if c.isOver() {
							t.Fatal("the gateway did not wait for a client that reports")
						}
						c.say(`{"type":"playback","item_id":"farewell","played_ms":3000,"done":true}`)
					}
					synctest.Wait()
					if !c.isOver() || c.bytes != 23*second || c.count("audio.flush") != 0 {
						t.Errorf("closed=%t after %d bytes with %d flushes", c.isOver(), c.bytes, c.count("audio.flush"))
					}
				})
			})
		}
	}
}

// TestNothingAfterTheFarewell: a blocked user hears the farewell and no later speech, in the same answer or another.
func TestNothingAfterTheFarewell(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.calls(model, "u1", "ban", `{}`)
		model.Emit(transport.ResponseStarted{ID: "r2"})
		speaks(model, "farewell", second)
		model.Emit(transport.Transcript{Item: "more", Role: transport.RoleAssistant, Text: "And another thing."})
		speaks(model, "more", second)
		model.Emit(transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		synctest.Wait()
		model.Emit(transport.InputCommitted{Item: "u2"}, transport.ResponseStarted{ID: "r3"},
			transport.Transcript{Item: "evenmore", Role: transport.RoleAssistant, Text: "Are you there?", Final: true})
		speaks(model, "evenmore", second)
		model.Emit(transport.ResponseDone{ID: "r3", Status: transport.ResponseCompleted})
		synctest.Wait()
		c.say(`{"type":"playback","item_id":"farewell","played_ms":1000,"done":true}`)
		synctest.Wait()
		if c.bytes != second || c.count("audio.start") != 1 || c.count("transcript") != 0 || c.count("turn.started") != 1 || !c.isOver() {
			t.Errorf("%d bytes were heard, session over: %t\n%s", c.bytes, c.isOver(), strings.Join(c.log(), "\n"))
		}
	})
}

// TestUnsentIsNotHeard: a session ends while most of an answer waits for a slow client. The handback contains the sent
// part, and no message mentions more.
func TestUnsentIsNotHeard(t *testing.T) {
	for name, caps := range map[string]transport.Capabilities{"hearing": hearing, "announcing": announcing} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{}
				st := newStage(t, caps, desk.give)
				c := st.connect(strings.Replace(startText, "}", `,"conversation_id":"conv_00000000000000000000000000"}`, 1))
				model := st.fake.Accept(t)
				synctest.Wait()
				model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"},
					transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "one two three four five six seven eight nine ten", Final: true},
					transport.Transcript{Item: "a2", Role: transport.RoleAssistant, Text: "eleven twelve", Final: true})
				model.EmitAudio("a1", make([]byte, second))
				synctest.Wait()
				c.stallWrites()
				speaks(model, "a1", 3*second)
				speaks(model, "a2", 2*second)
				model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
				pass(3 * time.Second) // less than the time for a slow client
				c.say(`{"type":"playback","item_id":"a1","played_ms":90000}`)
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				close(c.stall)
				synctest.Wait()
				pass(time.Minute)
				synctest.Wait()
				said := ""
				for _, b := range desk.seen().back {
					for _, e := range b.Entries {
						said += e.Text + "|"
					}
				}
				if said != "one two|" || c.count("audio.start") != 1 || c.count("audio.flush") != 0 {
					t.Errorf("handed back: %q\n%s", said, strings.Join(c.log(), "\n"))
				}
				if end := c.last(t, "audio.end"); end["audio_ms"] != float64(audio.MS(24000, c.bytes)) {
					t.Errorf("%v does not match the %d bytes that were sent", end, c.bytes)
				}
			})
		})
	}
}

// TestReportBeyondSent: the handback of an interrupted answer is limited to the sent part, whatever the client reports.
func TestReportBeyondSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{}
		st := newStage(t, hearing, desk.give)
		c := st.connect(strings.Replace(startText, "}", `,"conversation_id":"conv_00000000000000000000000000"}`, 1))
		model := st.fake.Accept(t)
		synctest.Wait()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"},
			transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: "one two three four five six seven eight nine ten", Final: true})
		model.EmitAudio("a1", make([]byte, second))
		synctest.Wait()
		c.stallWrites()
		speaks(model, "a1", 3*second)
		c.say(`{"type":"interrupt"}`)
		synctest.Wait()
		close(c.stall)
		c.say(`{"type":"playback","item_id":"a1","played_ms":90000,"done":true}`)
		synctest.Wait()
		c.say(`{"type":"session.end"}`)
		pass(time.Minute)
		synctest.Wait()
		if back := desk.seen().back; len(back) != 1 || len(back[0].Entries) != 1 || back[0].Entries[0].Text != "one two" || !back[0].Entries[0].Interrupted {
			t.Errorf("handed back: %+v", back)
		}
	})
}

// TestClockAfterFlush: dropped audio takes no time, so the next answer begins when it is sent, and its turn ends when
// it was heard.
func TestClockAfterFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		speaks(model, "a1", 30*second)
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		c.say(`{"type":"input.text","text":"no"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r2"})
		speaks(model, "a2", second)
		model.Emit(transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		pass(1300 * time.Millisecond)
		synctest.Wait()
		c.expect(t, "audio.flush a1", "turn.ended interrupted", "audio.start a2", "audio.end a2", "turn.ended completed")
	})
}

// TestTurnEndsAfterSlowClient: the end of the last write ends the turn, without any other event.
func TestTurnEndsAfterSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		synctest.Wait()
		c.stallWrites()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		speaks(model, "a1", second)
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		pass(4 * time.Second)
		synctest.Wait()
		close(c.stall)
		pass(1300*time.Millisecond - 1)
		synctest.Wait()
		if c.count("turn.ended") != 0 {
			t.Fatal("the turn has ended before it was heard")
		}
		pass(time.Millisecond)
		synctest.Wait()
		c.expect(t, "audio.end a1", "turn.ended completed")
	})
}

// TestItemsDoNotMix: a new item ends the previous one; later audio of the previous one is dropped and counted.
func TestItemsDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		for range 3 {
			model.EmitAudio("a1", make([]byte, 4800))
			model.EmitAudio("a2", make([]byte, 2400))
		}
		model.Emit(transport.AudioDone{Item: "a1"}, transport.AudioDone{Item: "a2"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		dropped := st.only().down.FlushedBytes()
		pass(time.Second)
		synctest.Wait()
		var received []string
		for _, line := range c.log() {
			if strings.HasPrefix(line, "audio.") {
				received = append(received, line)
			}
		}
		want := []string{"audio.start a1", "audio.end a1", "audio.start a2", "audio.end a2"}
		if !slices.Equal(received, want) || c.bytes != 4800+3*2400 || dropped != 2*4800 {
			t.Errorf("the client got %q and %d bytes, %d were dropped", received, c.bytes, dropped)
		}
	})
}

// TestDroppedItemStaysDropped: an item that the model begins after an interruption of its answer is dropped. Its later
// audio is not played and does not end the next answer.
func TestDroppedItemStaysDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
		model.EmitAudio("a1", make([]byte, 4800))
		synctest.Wait()
		model.Emit(transport.SpeechStarted{Item: "u2", AudioMS: 900})
		model.EmitAudio("a2", make([]byte, 2400))
		model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseInterrupted}, transport.SpeechStopped{Item: "u2", AudioMS: 1200, EndMS: 1100},
			transport.InputCommitted{Item: "u2"}, transport.ResponseStarted{ID: "r2"})
		for range 3 {
			model.EmitAudio("b1", make([]byte, 4800))
			model.EmitAudio("a2", make([]byte, 2400))
		}
		model.Emit(transport.AudioDone{Item: "b1"}, transport.ResponseDone{ID: "r2", Status: transport.ResponseCompleted})
		pass(time.Second)
		synctest.Wait()
		var received []string
		for _, line := range c.log() {
			if strings.HasPrefix(line, "audio.") {
				received = append(received, line)
			}
		}
		want := []string{"audio.start a1", "audio.flush a1 user_speech", "audio.start b1", "audio.end b1"}
		if !slices.Equal(received, want) || c.bytes != 4*4800 {
			t.Errorf("the client got %q and %d bytes", received, c.bytes)
		}
	})
}

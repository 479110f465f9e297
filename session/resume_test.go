package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session/downlink"
	"voicegw/transport"
)

// answer makes the model answer a text with one item.
func answer(model interface{ Emit(...transport.Event) }, n int, pcm []byte) {
	r, item := fmt.Sprint("r", n), fmt.Sprint("a", n)
	model.Emit(transport.ResponseStarted{ID: r}, &transport.AudioOut{Item: item, PCM: pcm},
		transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: fmt.Sprint("answer ", n), Final: true},
		transport.AudioDone{Item: item}, transport.ResponseDone{ID: r, Status: transport.ResponseCompleted})
}

// TestResumeLosesNothing (S1, S2): wherever in the stream a connection breaks, also during a replay, the client gets
// every message once and every byte of audio at its position.
func TestResumeLosesNothing(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { losesAtRandom(t, rand.New(rand.NewPCG(seed, 17))) })
		})
	}
}

func losesAtRandom(t *testing.T, rng *rand.Rand) {
	r, model := comingBack(t, nil)
	said := map[string][]byte{}
	for n := 1; n <= 4; n++ {
		r.conn.say(fmt.Sprintf(`{"type":"input.text","text":"question %d"}`, n))
		synctest.Wait()
		item, pcm := fmt.Sprint("a", n), speech(2*(2000+rng.IntN(40000)), byte(n))
		said[item] = pcm
		cut := rng.IntN(len(pcm)/2) * 2
		model.Emit(transport.ResponseStarted{ID: item}, &transport.AudioOut{Item: item, PCM: pcm[:cut]})
		synctest.Wait()
		for range rng.IntN(4) {
			r.read(rng.IntN(12))
			if rng.IntN(3) == 0 && r.taken > 0 {
				r.acknowledge()
			}
			if r.token == "" {
				r.read(1)
			}
			r.lose()
			pass(time.Duration(rng.IntN(3)) * time.Second)
			if rng.IntN(2) == 0 && cut < len(pcm) {
				more := min(cut+2*rng.IntN(3000), len(pcm))
				model.EmitAudio(item, pcm[cut:more])
				model.Emit(transport.Transcript{Item: item, Role: transport.RoleAssistant, Text: strings.Repeat("w", more)})
				cut = more
				synctest.Wait()
			}
			r.comeBack(r.position())
		}
		model.EmitAudio(item, pcm[cut:])
		model.Emit(transport.AudioDone{Item: item}, transport.ResponseDone{ID: item, Status: transport.ResponseCompleted})
		synctest.Wait()
		r.read(-1)
	}
	r.noteLeads()
	for item, pcm := range said {
		r.sameAudio(item, pcm)
	}
	r.shown()
	if r.gaps {
		t.Error("a snapshot replaced messages that should have been held")
	}
	r.conn.say(`{"type":"session.end"}`)
	synctest.Wait()
	r.conn.ended(t, protocol.CloseDone)
}

// acknowledge sends the gateway the client's position.
func (r *returning) acknowledge() {
	r.conn.say(fmt.Sprintf(`{"type":"ping","t":1,"seq":%d}`, r.highest))
	if r.newest != "" {
		r.conn.say(fmt.Sprintf(`{"type":"playback","item_id":%q,"played_ms":0,"received_ms":%d,"seq":%d}`, r.newest, len(r.audio[r.newest])/48, r.highest))
	}
	synctest.Wait()
}

// TestReloadFlushesHeardAnswer: a reloaded page has no audio. Items that it knew are flushed, the model learns how much
// was heard, and an unknown answer is sent from its beginning.
func TestReloadFlushesHeardAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"tell me"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"}, &transport.AudioOut{Item: "a1", PCM: speech(48*2000, 1)})
		synctest.Wait()
		r.read(-1)
		r.conn.say(`{"type":"playback","item_id":"a1","played_ms":700}`)
		synctest.Wait()
		r.lose()
		model.Emit(transport.AudioDone{Item: "a1"})
		second := speech(48*500, 2)
		model.Emit(&transport.AudioOut{Item: "a2", PCM: second}, transport.AudioDone{Item: "a2"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		pass(5 * time.Second)
		r.reload()
		r.comeBack("")
		r.read(-1)
		if !r.flushed["a1"] || r.flushed["a2"] {
			t.Errorf("flushed: %v", r.flushed)
		}
		if m := r.conn.last(t, "audio.flush"); m["reason"] != "connection_lost" {
			t.Errorf("the flush says %v", m)
		}
		r.sameAudio("a2", second)
		pass(time.Second)
		var cut []int64
		for _, cmd := range model.Commands() {
			if c, ok := cmd.(transport.Truncate); ok && c.Item == "a1" {
				cut = append(cut, c.AudioMS)
			}
		}
		if len(cut) != 1 || cut[0] != 700 {
			t.Errorf("the model got %v ms as heard, want 700 once", cut)
		}
	})
}

// TestReloadAtStartOfAnswer: if the page is reloaded before more than the first sound of an answer was heard, the
// answer is sent again, and the model learns of no cut. So is a second item after a partly heard one.
func TestReloadAtStartOfAnswer(t *testing.T) {
	for _, row := range []struct {
		name   string
		passes time.Duration
		report string
		ended  bool
		again  []string
		gone   []string
	}{
		{name: "at once", again: []string{"a1", "a2"}},
		{name: "at once, completely sent", ended: true, again: []string{"a1", "a2"}},
		{name: "after its first sound", passes: 200 * time.Millisecond, again: []string{"a1", "a2"}},
		{name: "after its first words", passes: 300 * time.Millisecond, again: []string{"a2"}, gone: []string{"a1"}},
		{name: "after a report", passes: 300 * time.Millisecond, report: `{"type":"playback","item_id":"a1","played_ms":100}`, again: []string{"a2"}, gone: []string{"a1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, nil)
				r.conn.say(`{"type":"input.text","text":"tell me"}`)
				synctest.Wait()
				said := map[string][]byte{"a1": speech(48*500, 1), "a2": speech(48*800, 2)}
				model.Emit(transport.ResponseStarted{ID: "r1"}, &transport.AudioOut{Item: "a1", PCM: said["a1"]}, transport.AudioDone{Item: "a1"}, &transport.AudioOut{Item: "a2", PCM: said["a2"]})
				if row.ended {
					model.Emit(transport.AudioDone{Item: "a2"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
				}
				synctest.Wait()
				r.read(-1)
				pass(row.passes)
				if row.report != "" {
					r.conn.say(row.report)
					synctest.Wait()
				}
				r.lose()
				if !row.ended {
					model.Emit(transport.AudioDone{Item: "a2"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
				}
				pass(time.Second)
				r.reload()
				r.comeBack("")
				r.read(-1)
				for _, item := range row.again {
					if r.flushed[item] {
						t.Errorf("%s was flushed", item)
					}
					r.sameAudio(item, said[item])
				}
				for _, item := range row.gone {
					if !r.flushed[item] {
						t.Errorf("%s continues, but the user has heard some of it", item)
					}
				}
				pass(time.Second)
				for _, cmd := range model.Commands() {
					if c, ok := cmd.(transport.Truncate); ok && !slices.Contains(row.gone, c.Item) {
						t.Errorf("the model got a cut of %s", c.Item)
					}
				}
				pass(20 * time.Second)
				r.read(-1)
				if m := r.conn.last(t, "turn.ended"); len(row.gone) == 0 && m["status"] != "completed" {
					t.Errorf("the turn ended as %v", m["status"])
				}
			})
		})
	}
}

// TestGraceEndsTheSession (S8): without a resume a session ends exactly after the resume time, and nothing of it
// remains: neither goroutines (the bubble and the Manager's Close check it) nor its entry in the directory.
func TestGraceEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &nodes{}
		r, model := comingBack(t, func(o *Options) { o.Cluster = others })
		s := r.st.only()
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		answer(model, 1, speech(48*3000, 1))
		synctest.Wait()
		r.lose()
		pass(29 * time.Second)
		if s.isOver() {
			t.Fatalf("the session ended early: %v", s.cause())
		}
		if n := r.st.m.Running(); n != 1 || others.has("is over") {
			t.Errorf("%d sessions are counted; ended for other nodes: %v", n, others.has("is over"))
		}
		pass(time.Second + time.Millisecond)
		synctest.Wait()
		if !errors.Is(r.gone(s), causeGone) {
			t.Fatalf("after the resume time: %v", r.gone(s))
		}
		model.WaitClosed(t)
		if h := r.st.m.options().budget; peek(h, "waiting.v") != 0 || peek(h, "keptChunks.v") != 0 || peek(h, "away") != 0 {
			t.Errorf("%d bytes and %d chunks are still counted, for %d sessions", peek(h, "waiting.v"), peek(h, "keptChunks.v"), peek(h, "away"))
		}
		if n := r.st.m.Running(); n != 0 || !others.has("is over") {
			t.Errorf("%d sessions remain; ended for other nodes: %v", n, others.has("is over"))
		}
	})
}

// changed returns a token with a different first character.
func changed(token string) string {
	if token[0] == 'x' {
		return "y" + token[1:]
	}
	return "x" + token[1:]
}

// TestTokens (S6): a token opens one attachment, an old token none. The token before the newest works until the client
// has sent something; every refusal is the same.
func TestTokens(t *testing.T) {
	refused := func(t *testing.T, r *returning, what, text, origin string) {
		t.Helper()
		c := r.dial(text, origin)
		synctest.Wait()
		c.ended(t, protocol.CloseTicket)
		if m := c.last(t, "error"); m["code"] != "resume_refused" || m["retryable"] != false {
			t.Errorf("%s: %v", what, m)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r, _ := comingBack(t, nil)
		r.read(-1)
		first := r.token
		refused(t, r, "a wrong token", strings.Replace(r.start(""), r.token, changed(r.token), 1), "")
		refused(t, r, "another session", strings.Replace(r.start(""), r.id, r.id+"x", 1), "")
		refused(t, r, "a page of another origin", r.start(""), "https://evil.example")
		refused(t, r, "another user", strings.Replace(r.start(""), `"resume"`, `"client":{"id":"mallory"},"resume"`, 1), "")
		r.lose()
		r.comeBack("")
		// The answer with the second token is lost, so the first one still works.
		r.lose()
		r.comeBack("")
		r.read(-1)
		second := r.token
		if second == first {
			t.Fatal("the token was not replaced")
		}
		r.conn.say(`{"type":"ping","t":1}`)
		synctest.Wait()
		refused(t, r, "a token that was used, and confirmed", strings.Replace(r.start(""), second, first, 1), "")
		if s := r.st.only(); s.isOver() || s.client.attachment() == nil {
			t.Error("refused attempts have ended the session, or its connection")
		}
	})
}

// TestAnswersToResumesAreLost: the answers to a client's attempts to resume, with its next tokens, are lost. It resumes with
// the token that it has whenever the network is back: on its gateway, or on another one when that has died.
func TestAnswersToResumesAreLost(t *testing.T) {
	for name, dies := range map[string]bool{"the gateway lives": false, "the gateway dies": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r, _ := beginsAt(t, f.stage(t, "a", remembering, nil))
				for range 3 {
					r.lose()
					pass(25 * time.Second)
					r.comeBack("")
				}
				if dies {
					f.kill("a")
					r.st = f.stage(t, "b", remembering, nil)
				} else {
					r.lose()
				}
				pass(25 * time.Second)
				r.comeBack("")
				if dies {
					r.st.fake.Accept(t)
				}
				synctest.Wait()
				r.read(-1)
				if started := r.conn.last(t, "session.started"); started["session_id"] != r.id || started["resumed"] != true {
					t.Errorf("the client got %v", started)
				}
			})
		})
	}
}

// TestTooManyTries: attempts with wrong tokens are limited, whether the session exists or not, and do not prevent its
// own client from resuming.
func TestTooManyTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := comingBack(t, nil)
		r.read(-1)
		for _, id := range []string{r.id, "voice-nobody"} {
			for i := range maxTries + 2 {
				text := strings.NewReplacer(r.token, "wrong", r.id, id).Replace(r.start(""))
				c := r.dial(text, "")
				synctest.Wait()
				if i < maxTries {
					c.ended(t, protocol.CloseTicket)
				} else {
					c.ended(t, protocol.CloseLimit)
				}
			}
		}
		r.comeBack("")
		r.read(-1)
		if len(r.resumed) != 2 || !r.resumed[1] {
			t.Errorf("the session's own client was refused: %v", r.resumed)
		}
	})
}

// TestNewestConnectionWins: two tabs use one token. The older one is closed with a code that forbids it to reconnect,
// and its messages no longer count.
func TestNewestConnectionWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.read(-1)
		older := r.conn
		r.comeBack("")
		older.ended(t, protocol.CloseResumedElsewhere)
		older.say(`{"type":"session.end"}`)
		synctest.Wait()
		r.conn.say(`{"type":"input.text","text":"still here"}`)
		synctest.Wait()
		answer(model, 1, speech(4800, 1))
		synctest.Wait()
		r.read(-1)
		r.sameAudio("a1", speech(4800, 1))
	})
}

// TestLateResume: an attempt to resume was delayed by its gateway, and the client has resumed on another connection
// since, which it keeps.
func TestLateResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := comingBack(t, nil)
		r.read(-1)
		before := r.start("")
		r.conn.Abort()
		r.comeBack("")
		late := newTestClient()
		late.gone = true
		late.say(before)
		r.st.m.Start(r.st.admit(netip.MustParseAddr("198.51.100.9")), late)
		synctest.Wait()
		r.conn.say(`{"type":"input.text","text":"still here"}`)
		synctest.Wait()
		if r.conn.isOver() {
			t.Errorf("the resumed connection was closed with %d", r.conn.closedWith())
		}
		if late.count("session.started") > 0 {
			t.Error("a disconnected client has the session")
		}
	})
}

// TestClientEndsSession: the user or a violation of the protocol ends a session; a broken connection does not.
func TestClientEndsSession(t *testing.T) {
	for name, tc := range map[string]struct {
		leave func(r *returning)
		over  bool
	}{
		"session.end":         {func(r *returning) { r.conn.say(`{"type":"session.end"}`) }, true},
		"a broken connection": {func(r *returning) { r.conn.Abort() }, false},
		"flooding": {func(r *returning) {
			for range floodErrors + 2 {
				r.conn.say(`{"type":"nonsense"}`)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := comingBack(t, nil)
				s := r.st.only()
				tc.leave(r)
				synctest.Wait()
				if s.isOver() != tc.over {
					t.Errorf("session over: %t, want %t", s.isOver(), tc.over)
				}
			})
		})
	}
}

// TestStuckClientMayResume: a client that reads nothing loses its connection, but not its session.
func TestStuckClientMayResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.read(-1)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		r.read(-1)
		r.conn.stallWrites()
		pcm := speech(48*4000, 1)
		answer(model, 1, pcm)
		pass(6 * time.Second)
		r.conn.ended(t, protocol.CloseSlowClient)
		r.comeBack(r.position())
		r.read(-1)
		r.sameAudio("a1", pcm)
	})
}

// TestSnapshot: a client that resumes after more messages than are held gets a snapshot.
func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		r.read(-1)
		r.lose()
		for i := range 60 {
			text := strings.Repeat(fmt.Sprint(i%10), 5000+200*i)
			model.Emit(transport.Transcript{Item: "a1", Role: transport.RoleAssistant, Text: text})
		}
		pcm := speech(48*1000, 1)
		model.Emit(transport.ResponseStarted{ID: "r1"}, &transport.AudioOut{Item: "a1", PCM: pcm})
		synctest.Wait()
		s := r.st.only()
		if bytes, messages := peek(&s.down, "words"), peek(&s.down, "waiting"); bytes > 256<<10 || messages > downlink.MaxKept {
			t.Errorf("%d bytes of %d messages wait", bytes, messages)
		}
		r.comeBack(r.position())
		r.read(-1)
		if !r.gaps {
			t.Fatal("no snapshot, although messages were dropped")
		}
		texts := r.conn.texts
		var got []string
		for _, m := range texts {
			got = append(got, fmt.Sprint(m["type"]))
		}
		if want := "session.started turn.started transcript transcript audio.start"; strings.Join(got, " ") != want {
			t.Errorf("the client got %v, want %s", got, want)
		}
		if last := fmt.Sprint(texts[3]["text"]); len(last) != 5000+200*59 {
			t.Errorf("the transcript contains %d characters", len(last))
		}
		r.sameAudio("a1", pcm)
		r.conn.say(`{"type":"ping","t":1}`)
		synctest.Wait()
		r.read(-1)
		r.lose()
		r.comeBack(r.position())
		if m := r.conn.last(t, "session.started"); m["snapshot"] != nil {
			t.Error("a second snapshot, although nothing was lost since the first")
		}
	})
}

// TestAudioWithoutClientIsBounded: while the client is disconnected, half a minute of the model's audio is held; then the
// item ends early, without gaps.
func TestAudioWithoutClientIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		r.read(-1)
		r.lose()
		pcm := speech(48*40_000, 1)
		model.Emit(transport.ResponseStarted{ID: "r1"})
		for i := 0; i < len(pcm); i += 9600 {
			model.EmitAudio("a1", pcm[i:i+9600])
		}
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		r.comeBack(r.position())
		r.read(-1)
		if n := len(r.audio["a1"]); n != 48*30_000 || !bytes.Equal(r.audio["a1"], pcm[:n]) {
			t.Errorf("the client got %d bytes, want the first %d", n, 48*30_000)
		}
		pass(time.Minute)
		r.read(-1)
		if ended := r.conn.last(t, "turn.ended"); ended["status"] != "completed" {
			t.Errorf("the turn: %v", ended)
		}
	})
}

// TestResumeOnFullGateway: a full or draining gateway accepts a client that resumes, and refuses a new one.
func TestResumeOnFullGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := comingBack(t, func(o *Options) { o.Limits.Sessions = 1 })
		r.read(-1)
		r.lose()
		c := r.dial(startText, "")
		synctest.Wait()
		c.ended(t, protocol.CloseTryLater)
		drained := make(chan error)
		ctx, stop := contextWithTimeout(20 * time.Second)
		defer stop()
		go func() { drained <- r.st.m.Drain(ctx) }()
		synctest.Wait()
		c = r.dial(startText, "")
		synctest.Wait()
		c.ended(t, protocol.CloseServerLeaving)
		r.comeBack("")
		r.read(-1)
		if len(r.resumed) != 2 {
			t.Fatal("the client could not resume")
		}
		r.conn.say(`{"type":"session.end"}`)
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if _, err := r.st.m.Admit(someone, Coming{}); !errors.Is(err, ErrDraining) {
			t.Errorf("without a session to resume: %v", err)
		}
	})
}

// TestEndsWithoutClient: text in the same conversation, an operator and a block end a session whose client is
// disconnected; only the operator ends one whose client is connected.
func TestEndsWithoutClient(t *testing.T) {
	for name, tc := range map[string]struct {
		end     func(m *Manager, s *session)
		cause   *Cause
		present bool // also ends a session whose client is connected
	}{
		"text":                {func(m *Manager, s *session) { m.EndDetached(context.Background(), s.start.ConversationID, s.user) }, causeText, false},
		"other text":          {func(m *Manager, s *session) { m.EndDetached(context.Background(), "another", s.user) }, nil, false},
		"another user's text": {func(m *Manager, s *session) { m.EndDetached(context.Background(), s.start.ConversationID, user.User{}) }, nil, false},
		"a block":             {func(*Manager, *session) { pass(blockCheck) }, causeBlocked, false},
		"an operator":         {func(m *Manager, s *session) { m.End(s.id) }, causeOperator, true},
	} {
		for _, away := range []bool{true, false} {
			t.Run(fmt.Sprint(name, away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, _ := comingBack(t, func(o *Options) {
						if name == "a block" {
							checks := 0
							o.Blocked = func(user.User) (time.Time, bool) {
								checks++
								return time.Now().Add(time.Hour), checks > 1 // after the session's start
							}
						}
					})
					s := r.st.only()
					s.start.ConversationID = "the-conversation-of-this-test"
					if away {
						r.lose()
					}
					tc.end(r.st.m, s)
					synctest.Wait()
					if over := tc.cause != nil && (away || tc.present); s.isOver() != over || over && s.cause().Reason != tc.cause.Reason {
						t.Errorf("over: %v", r.gone(s))
					}
				})
			})
		}
	}
}

// back returns a resumable client that follows the messages to c, in tl's stage.
func (tl *till) back(t *testing.T, c *testClient) *returning {
	t.Helper()
	r := &returning{t: t, st: tl.stage, conn: c, seen: map[int64]int{}, leads: map[int64]bool{}, first: map[string]int64{}, audio: map[string][]byte{}, flushed: map[string]bool{}}
	r.read(-1)
	return r
}

func withGrace(o *Options) { o.Policy.ResumeGrace = 30 * time.Second }

// TestQuestionAfterResume (S5): a question from before the loss can be answered after it, once; its token does not open
// the session.
func TestQuestionAfterResume(t *testing.T) {
	onStage(t, withGrace, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		token := tl.asksToPay(c, model, "u1")
		r := tl.back(t, c)
		r.lose()
		pass(20 * time.Second)
		r.comeBack(r.position())
		r.read(-1)
		resolve(r.conn, token, true)
		tl.once(t)
		r.lose()
		r.comeBack(r.position())
		resolve(r.conn, token, true)
		r.conn.expect(t, "session.started", "error confirmation_used")
		tl.once(t)
	})
}

// TestCallsRunOnWithoutAClient (S3, S4): a call that runs when the connection breaks finishes, the model gets one
// answer, and the client gets its end once, however often it resumes.
func TestCallsRunOnWithoutAClient(t *testing.T) {
	onStage(t, withGrace, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		tl.takes = 5 * time.Second
		token := tl.asksToPay(c, model, "u1")
		resolve(c, token, true)
		r := tl.back(t, c)
		r.lose()
		pass(time.Second)
		r.comeBack(r.position())
		r.lose()
		pass(5 * time.Second)
		tl.once(t)
		r.comeBack(r.position())
		r.read(-1)
		if n := r.conn.count("tool.ended"); n != 1 {
			t.Errorf("the client got the call's end %d times", n)
		}
		if n := len(userTexts(model)); n != 1 {
			t.Errorf("the model got %d answers", n)
		}
		r.shown()
	})
}

// TestThousandLostClients: a thousand clients that are lost at once in mid-answer cost at most 256 MB, however much the
// models say. The last ones keep their audio.
func TestThousandLostClients(t *testing.T) {
	if testutil.RaceEnabled || testing.Short() {
		t.Skip("it takes 200 MB")
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // pools are emptied by the second collection
		var ms runtime.MemStats
		runtime.ReadMemStats(&ms)
		return int64(ms.HeapAlloc)
	}
	before, common := heap(), downlink.NewBudget()
	ev := &transport.AudioOut{Item: "a1", PCM: make([]byte, 9600)}
	all := make([]*session, 1000)
	for i := range all {
		s := quietSessionOf(t, 16000, 24000, common)
		for range 10 { // two seconds that the client has
			walkDown(s, ev)
		}
		all[i] = s
	}
	for _, s := range all {
		s.client.attachment().lost(causeGone)
	}
	for range 100 { // 20 s that it does not hear
		for _, s := range all {
			s.model.link().take(ev)
		}
	}
	used := heap() - before
	t.Logf("%d MB for %d sessions", used>>20, len(all))
	if used > 256<<20 {
		t.Errorf("a thousand sessions without clients take %d MB", used>>20)
	}
	if first, last := &all[0].down, &all[len(all)-1].down; peek(first, "audio") > 0 || peek(last, "audio") == 0 {
		t.Errorf("the first one lost holds %d bytes of audio, the last %d", peek(first, "audio"), peek(last, "audio"))
	}
	for _, s := range all {
		s.client.leaving.Wait()
		s.clock.Stop()
		s.down.Lose()
	}
	if peek(common, "waiting.v") != 0 || peek(common, "keptChunks.v") != 0 {
		t.Errorf("%d bytes and %d chunks are still counted", peek(common, "waiting.v"), peek(common, "keptChunks.v"))
	}
}

// TestUntakenAnswerIsFlushed (S2): the connection of a client without reports takes an answer and proves it, but its program
// does not. By the clock the answer is over and its audio released: the client gets a flush, not an end that promises it.
func TestUntakenAnswerIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, nil)
		r.conn.answers = true
		r.read(-1)
		r.conn.say(`{"type":"input.text","text":"hello"}`)
		synctest.Wait()
		model.Emit(transport.ResponseStarted{ID: "r1"})
		for i := range 5 {
			model.EmitAudio("a1", speech(second, byte(i)))
			synctest.Wait()
			if i == 0 {
				r.readTo("a1", 100)
			}
			pass(time.Second)
		}
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		pass(10 * time.Second)
		r.lose()
		r.comeBack(r.position())
		r.read(-1)
		r.conn.expect(t, "audio.flush a1")
	})
}

// TestHeardAudioIsReleased: audio that was heard, by the client's reports or by the clock, is no longer held, also
// without acknowledgements.
func TestHeardAudioIsReleased(t *testing.T) {
	for _, reports := range []bool{true, false} {
		t.Run(fmt.Sprint(reports), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, model := comingBack(t, nil)
				r.conn.say(`{"type":"input.text","text":"hello"}`)
				synctest.Wait()
				answer(model, 1, speech(48*2000, 1))
				synctest.Wait()
				d := &r.st.only().down
				if peek(d, "held.chunks") == 0 {
					t.Fatal("nothing is held during playback")
				}
				if reports {
					r.conn.say(`{"type":"playback","item_id":"a1","played_ms":2000,"done":true}`)
				} else {
					pass(10 * time.Second)
					r.conn.say(`{"type":"input.text","text":"and now"}`)
				}
				synctest.Wait()
				if peek(d, "held.chunks") != 0 || peek(d, "held.items") != 0 || peek(r.st.m.options().budget, "keptChunks.v") != 0 {
					t.Errorf("%d chunks of %d items are still held", peek(d, "held.chunks"), peek(d, "held.items"))
				}
			})
		})
	}
}

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/audio"
	"voicegw/internal/audit"
	"voicegw/protocol"
	"voicegw/transport"
)

const noticeText = "This call is recorded."

// spokenBy is a Speech that returns the same audio for every sentence, after a delay; a nil clip fails.
type spokenBy struct {
	clip  audio.Clip
	after time.Duration
}

func (s spokenBy) Speak(ctx context.Context, _ string) (audio.Clip, error) {
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
		return audio.Clip{}, ctx.Err()
	}
	if s.clip.PCM == nil {
		return s.clip, errors.New("no audio")
	}
	return s.clip, nil
}

// notifying makes sessions begin with a notice of a second.
func notifying(after time.Duration) func(*Options) {
	return func(o *Options) {
		o.Agent.Notice, o.Agent.Greeting = noticeText, "Greet."
		o.Speech = spokenBy{audio.Clip{Rate: 24000, PCM: speech(48000, 7)}, after}
	}
}

func reports(item string, ms int) string {
	return fmt.Sprintf(`{"type":"playback","item_id":%q,"played_ms":%d,"done":true}`, item, ms)
}

// TestNoticeIsHeardFirst: until the client reports that the notice was heard, the model gets silence and no text. Then
// it gets the waiting text, and the user's own audio.
func TestNoticeIsHeardFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taking := hearing
		taking.AddItem = transport.AddItemLive
		st := newStage(t, taking, notifying(300*time.Millisecond))
		c, model := st.started()
		c.speak(speech(640, 1))
		c.say(`{"type":"input.text","text":"hello"}`)
		pass(time.Second)
		synctest.Wait()
		c.expect(t, "turn.started", "audio.start exact_1_1", "transcript", "audio.end exact_1_1")
		if got := c.last(t, "transcript"); got["text"] != noticeText || got["role"] != "assistant" || got["final"] != true {
			t.Errorf("the transcript is %v", got)
		}
		if c.bytes != 48000 {
			t.Errorf("the client got %d bytes of audio, want a second", c.bytes)
		}
		if all := model.Audio(); len(all) != 640 || bytes.ContainsFunc(all, func(r rune) bool { return r != 0 }) {
			t.Errorf("the model heard %d bytes of the user", len(all))
		}
		c.say(reports("exact_1_1", 1000))
		synctest.Wait()
		if got, ok := model.NextControl(t).(transport.AddItem); !ok || got.Item != (transport.PastAssistant{Text: noticeText}) {
			t.Errorf("the model got %#v", got)
		}
		if got := model.NextControl(t); got != (transport.UserText{Text: "hello"}) {
			t.Errorf("the model got %#v", got)
		}
		c.speak(speech(640, 1))
		synctest.Wait()
		if all := model.Audio(); len(all) != 1280 || !bytes.Equal(all[640:], speech(640, 1)) {
			t.Error("the user is not heard after the notice")
		}
	})
}

// TestNoticeWithoutAudio: a speech endpoint that hangs or fails never causes silence: the model reads the notice, or
// the session ends with a reason.
func TestNoticeWithoutAudio(t *testing.T) {
	for name, tc := range map[string]struct {
		speech Speech
		refuse bool
	}{
		"nothing is configured":        {nil, false},
		"it fails":                     {spokenBy{}, false},
		"it hangs":                     {spokenBy{after: time.Hour}, false},
		"it hangs, but is required":    {spokenBy{after: time.Hour}, true},
		"it fails, but is required":    {spokenBy{}, true},
		"required, but not configured": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, func(o *Options) {
					o.Agent.Notice, o.Speech, o.Policy.RefuseUnsaid = noticeText, tc.speech, tc.refuse
				})
				c, model := st.started()
				pass(16 * time.Second)
				synctest.Wait()
				if tc.refuse {
					c.ended(t, protocol.CloseTryLater)
					if e := c.last(t, "error"); !strings.Contains(fmt.Sprint(e["message"]), "notice") {
						t.Errorf("the client got %v", e)
					}
					return
				}
				got, _ := model.NextControl(t).(transport.UserText)
				if !strings.HasPrefix(got.Text, "[voicegw:") || !strings.Contains(got.Text, noticeText) {
					t.Errorf("the model got %#v", got)
				}
			})
		})
	}
}

// TestExactSentenceIsReplayed: a client that lost its connection during the notice gets the rest without gap or
// overlap, and the notice counts as heard once.
func TestExactSentenceIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, model := comingBack(t, notifying(0))
		synctest.Wait()
		r.read(8)
		r.lose()
		r.comeBack(r.position())
		synctest.Wait()
		r.read(-1)
		r.sameAudio("exact_1_1", speech(48000, 7))
		r.conn.say(reports("exact_1_1", 1000))
		synctest.Wait()
		if got := model.NextControl(t); got != (transport.UserText{Text: "Greet."}) {
			t.Errorf("the model got %#v", got)
		}
		if n := r.conn.count("audio.flush"); n != 0 {
			t.Errorf("%d items were flushed", n)
		}
	})
}

// TestNoticeAfterATakeover: the next node knows whether the notice was heard, and repeats only an unheard one.
func TestNoticeAfterATakeover(t *testing.T) {
	for _, heard := range []bool{false, true} {
		t.Run(fmt.Sprint(heard), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r, model := beginsAt(t, f.stage(t, "a", remembering, notifying(0)))
				pass(100 * time.Millisecond)
				r.conn.say(`{"type":"playback","item_id":"exact_1_1","played_ms":100}`)
				synctest.Wait()
				if heard {
					r.conn.say(reports("exact_1_1", 1000))
					synctest.Wait()
					_ = model.NextControl(t) // the greeting
					answers(r.conn, model, "r1", "a1", "Hello.")
				} else {
					r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
				}
				synctest.Wait()
				pass(2 * time.Second) // checkpoints are written once a second
				r.read(-1)
				f.kill("a")
				r.st = f.stage(t, "b", remembering, notifying(0))
				r.comeBack(r.position())
				next := r.st.fake.Accept(t)
				synctest.Wait()
				r.read(-1)
				if heard {
					if r.conn.count("audio.start") != 0 {
						t.Errorf("the notice is repeated: %v", r.conn.log())
					}
					return
				}
				r.sameAudio("exact_2_1_1", speech(48000, 7))
				r.conn.say(reports("exact_2_1_1", 1000))
				synctest.Wait()
				if got := next.NextControl(t); got != (transport.UserText{Text: "where is Ada"}) {
					t.Errorf("the model got %#v", got)
				}
			})
		})
	}
}

// TestProviderPlaysASentence: a provider with this capability gets the audio at its own rate, and the played item is
// the sentence.
func TestProviderPlaysASentence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		playing := hearing
		playing.PlaysExact = 30
		st := newStage(t, playing, notifying(0))
		c, model := st.started()
		synctest.Wait()
		got, ok := model.NextControl(t).(transport.PlayExact)
		if want := audio.Bytes(model.info.OutputRate, time.Second); !ok || got.Text != noticeText || len(got.PCM) < want-64 || len(got.PCM) > want+64 {
			t.Fatalf("the model got %T with %d bytes, want %d", got, len(got.PCM), want)
		}
		model.Emit(transport.ResponseStarted{ID: "r1", Exact: true})
		model.EmitAudio("a1", got.PCM)
		model.Emit(transport.AudioDone{Item: "a1"}, transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
		synctest.Wait()
		if got := c.last(t, "transcript"); got["id"] != "a1" || got["text"] != noticeText {
			t.Errorf("the transcript is %v", got)
		}
		c.say(reports("a1", 1000))
		synctest.Wait()
		if got := model.NextControl(t); got != (transport.UserText{Text: "Greet."}) {
			t.Errorf("the model got %#v", got)
		}
	})
}

// TestSessionEndsWhileASentenceIsMade: no goroutine of the speech request remains.
func TestSessionEndsWhileASentenceIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var audited []string
		st := newStage(t, hearing, func(o *Options) {
			notifying(time.Hour)(o)
			o.Audit = func(r audit.Record) { audited = append(audited, string(r.Event)+" "+r.Spoken) }
		})
		c, _ := st.started()
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		c.ended(t, protocol.CloseDone)
		if got := strings.Join(audited, " "); !strings.Contains(got, "exact_sentence unsaid") {
			t.Errorf("the audit has %q", got)
		}
	})
}

package session

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/transport"
)

// heardAll returns all audio that a connection received.
func heardAll(model *fakeConn) []byte {
	_, pcm := heardOf(model)
	return pcm
}

// comeBackWith resumes on another node with the recorded audio from fromMS to toMS, replays what the node requests, and
// returns session.started.
func (r *returning) comeBackWith(said []byte, fromMS, toMS int) (started map[string]any) {
	r.t.Helper()
	r.comeBack(fmt.Sprintf(`%s,"input":{"from_ms":%d,"to_ms":%d}`, r.position(), fromMS, toMS))
	started = r.conn.last(r.t, "session.started")
	if started["input_again"] == true {
		r.conn.says(said[int(started["input_ms"].(float64))*32 : toMS*32])
	}
	return started
}

// TestSpeechReplay: a node dies during or after speech, before its words are known. The client replays the speech; the
// next model hears it once and answers it. A turn known to the client keeps its number.
func TestSpeechReplay(t *testing.T) {
	announces := announcing
	announces.History = transport.HistoryItems
	for name, caps := range map[string]transport.Capabilities{"hearing": remembering, "deaf": announces} {
		for _, stage := range []string{"speaking", "stopped", "open"} {
			if stage != "speaking" && name == "deaf" {
				continue // the turn begins when the gateway hears the end
			}
			t.Run(name+" "+stage, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newShelf()
					r, model := beginsAt(t, f.stage(t, "a", caps, nil))
					said := append(make([]byte, 2*32000), testutil.SpeechLike(16000, 3*time.Second, 5)...)
					r.conn.says(said[:64000])
					pass(time.Second)
					r.conn.says(said[64000:])
					if name == "hearing" {
						model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 2100})
					}
					synctest.Wait()
					open := 0
					if stage != "speaking" {
						model.Emit(transport.SpeechStopped{Item: "u1", AudioMS: 4900, EndMS: 4900})
					}
					if stage == "open" {
						model.Emit(transport.Transcript{Item: "u1", Role: transport.RoleUser, Text: "Where"}, transport.InputCommitted{Item: "u1"})
						open = 1
					}
					synctest.Wait()
					r.read(-1)
					f.kill("a")

					r.st = f.stage(t, "b", caps, nil)
					started := r.comeBackWith(said, 0, 5000)
					from, _ := started["input_ms"].(float64)
					if started["input_again"] != true || from < 600 || from > 2100 {
						t.Fatalf("the client got %v", started)
					}
					next := r.st.fake.Accept(t)
					synctest.Wait()
					if setups := r.st.fake.Setups(); len(setups[len(setups)-1].History) != 0 {
						t.Errorf("the model got %+v", setups[len(setups)-1].History)
					}
					r.conn.says(make([]byte, 32000))
					want := append(said[int(from)*32:len(said):len(said)], make([]byte, 32000)...)
					if got := heardAll(next); !bytes.Equal(got, want) {
						t.Errorf("the model heard %d bytes, want the %d unheard ones", len(got), len(want))
					}
					if name == "hearing" {
						next.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 1000}, transport.SpeechStopped{Item: "u1", AudioMS: 3900, EndMS: 3900}, transport.InputCommitted{Item: "u1"})
						synctest.Wait()
						if m := r.conn.last(t, "speech.started"); m["audio_ms"].(float64) != from+1000 {
							t.Errorf("the client got %v", m)
						}
					}
					if m := r.conn.last(t, "speech.started"); name == "deaf" && (m["audio_ms"].(float64) < 1600 || m["audio_ms"].(float64) > 2500) {
						t.Errorf("the client got %v", m)
					}
					answers(r.conn, next, "r1", "a1", "In Vienna.")
					if r.conn.count("error") != 0 || r.conn.count("turn.ended completed") != 1 || r.conn.count("turn.ended") != 1 {
						t.Errorf("the client got %q", r.conn.log())
					}
					if m := r.conn.last(t, "turn.ended"); open > 0 && m["turn"] != float64(open) {
						t.Errorf("the turn ended as %v", m)
					}
					if kept, m := f.checkpoint(t, r.id); m.SettledMS == nil || *m.SettledMS < 4500 || kept.Epoch != 2 {
						t.Errorf("the checkpoint is %+v, %+v", kept, m)
					}
				})
			})
		}
	}
}

// TestKnownSpeech: answered speech, and speech whose words are in the checkpoint, is not requested, so the model does
// not get it twice.
func TestKnownSpeech(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprintf("answered %v", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
				said := testutil.SpeechLike(16000, 3*time.Second, 5)
				r.conn.says(said)
				model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10}, transport.SpeechStopped{Item: "u1", AudioMS: 2900, EndMS: 2900}, transport.InputCommitted{Item: "u1"})
				if answered {
					answers(r.conn, model, "r1", "a1", "In Vienna.")
				} else {
					model.Emit(transport.Transcript{Item: "u1", Role: transport.RoleUser, Text: "Where is Ada?", Final: true})
				}
				synctest.Wait()
				r.read(-1)
				f.kill("a")

				r.st = f.stage(t, "b", remembering, nil)
				started := r.comeBackWith(said, 0, 3000)
				if started["input_ms"] != 2900.0 || started["input_again"] != true {
					t.Errorf("the client got %v", started)
				}
				next := r.st.fake.Accept(t)
				synctest.Wait()
				if got := heardAll(next); !bytes.Equal(got, said[2900*32:]) {
					t.Errorf("the model heard %d bytes", len(got))
				}
				if answered {
					return
				}
				if got := next.NextControl(t); got != (transport.Respond{}) {
					t.Errorf("the model got %#v", got)
				}
				answers(r.conn, next, "r1", "a1", "In Vienna.")
				if r.conn.count("turn.ended completed") != 1 || r.conn.count("error") != 0 {
					t.Errorf("the client got %q", r.conn.log())
				}
			})
		})
	}
}

// TestPushToTalkReplay: with push-to-talk the client replays the speech between its two button messages, and the model
// gets them in this order.
func TestPushToTalkReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, _ := beginsAtWith(t, f.stage(t, "a", remembering, nil), `{"type":"session.start","input_rate":16000,"output_rate":24000,"turn_detection":"client"}`)
		said := append(make([]byte, 16000), testutil.Tone(16000, 440, -12, time.Second)...)
		r.conn.says(said[:16000])
		r.conn.say(`{"type":"input.activity","active":true}`)
		synctest.Wait()
		r.conn.says(said[16000:])
		r.conn.say(`{"type":"input.activity","active":false}`)
		synctest.Wait()
		r.read(-1)
		f.kill("a")

		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(`,"input":{"from_ms":0,"to_ms":1500}`)
		if m := r.conn.last(t, "session.started"); m["input_again"] != true || m["input_ms"] != nil {
			t.Fatalf("the client got %v", m)
		}
		r.conn.says(said[:16000])
		r.conn.say(`{"type":"input.activity","active":true}`)
		synctest.Wait()
		r.conn.says(said[16000:])
		r.conn.say(`{"type":"input.activity","active":false}`)
		next := r.st.fake.Accept(t)
		synctest.Wait()
		if order, got := heardOf(next); order != "a(a)" && order != "(a)" || !bytes.HasSuffix(got, said[16000:]) {
			t.Errorf("the model got %s: %d bytes", order, len(got))
		}
		answers(r.conn, next, "r1", "a1", "In Vienna.")
		if r.conn.count("error") != 0 || r.conn.count("turn.ended completed") != 1 {
			t.Errorf("the client got %q", r.conn.log())
		}
	})
}

// TestInterruptedReplay: the connection is lost while the client replays its speech. The client continues with the
// rest, and the model hears everything once.
func TestInterruptedReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		said := testutil.SpeechLike(16000, 3*time.Second, 5)
		r.conn.says(said)
		model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10})
		synctest.Wait()
		r.read(-1)
		f.kill("a")
		r.st = f.stage(t, "b", remembering, nil)
		r.comeBack(`,"input":{"from_ms":0,"to_ms":3000}`)
		next := r.st.fake.Accept(t)
		r.conn.says(said[:32000])
		r.read(-1)
		r.lose()
		started := r.comeBackWith(said, 0, 3000)
		if started["input_ms"] != 1000.0 || started["input_again"] != true {
			t.Errorf("the client got %v", started)
		}
		if got := heardAll(next); !bytes.Equal(got, said) {
			t.Errorf("the model heard %d bytes of %d", len(got), len(said))
		}
		r.read(-1)
		r.lose()
		if started := r.comeBackWith(said, 0, 3000); started["input_again"] != nil || started["input_ms"] != 3000.0 {
			t.Errorf("the client got %v", started)
		}
	})
}

// TestLongSpeechReplay: of long speech the newest ten seconds are requested. They may arrive at once even if connecting
// to the model is slow; the usual rate limit applies to later audio.
func TestLongSpeechReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		r, model := beginsAt(t, f.stage(t, "a", remembering, nil))
		said := testutil.SpeechLike(16000, 20*time.Second, 5)
		for at := 0; at < len(said); at += 32000 {
			r.conn.says(said[at : at+32000])
			pass(time.Second)
			if at == 0 {
				model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10})
			}
		}
		r.read(-1)
		f.kill("a")
		r.st = f.stage(t, "b", remembering, nil)
		release := r.st.fake.StallConnect()
		started := r.comeBackWith(said, 5000, 20000)
		if started["input_ms"] != 10000.0 {
			t.Errorf("the client got %v", started)
		}
		release()
		next := r.st.fake.Accept(t)
		synctest.Wait()
		if got := heardAll(next); !bytes.Equal(got, said[10000*32:]) || r.conn.count("error") != 0 {
			t.Errorf("the model heard %d bytes, and the client got %q", len(got), r.conn.log())
		}
		r.conn.says(make([]byte, 6*32000))
		if r.conn.count("error audio_too_fast") == 0 {
			t.Errorf("the client got %q", r.conn.log())
		}
	})
}

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

const noticeText = "This call is recorded."

// spokenNotice is a Speech with one recording.
type spokenNotice struct{ clip audio.Clip }

func (r spokenNotice) Speak(_ context.Context, text string) (audio.Clip, error) {
	if text != noticeText {
		return audio.Clip{}, fmt.Errorf("the text is %q", text)
	}
	return r.clip, nil
}

// notice is a notice of two seconds.
func notice() spokenNotice {
	return spokenNotice{audio.Clip{Rate: 24000, PCM: testutil.SpeechLike(24000, 2*time.Second, 3)}}
}

// TestExactNotice: a client of voicegw.v1 hears the whole notice first, and its words are answered once it has reported
// this.
func TestExactNotice(t *testing.T) {
	said := notice()
	overWires(t, setting{notice: noticeText, speech: said}, func(t *testing.T, _ string, st *stack) {
		c := st.start(t, 24000)
		c.say(&protocol.InputText{Text: "hello"})
		end := waitFor[*protocol.AudioEnd](c)
		got := 0
		for _, h := range c.seen {
			got += h.bytes
		}
		if end.ItemID != "exact_1_1" || end.AudioMS != 2000 || got != len(said.clip.PCM) {
			t.Errorf("%s has %d ms; %d bytes arrived", end.ItemID, end.AudioMS, got)
		}
		if words := messages[*protocol.Transcript](c); len(words) != 1 || words[0].Text != noticeText || words[0].Role != "assistant" {
			t.Errorf("the transcripts are %+v", words)
		}
		c.say(&protocol.Playback{ItemID: end.ItemID, PlayedMS: 2000, Done: true})
		if answer := waitFor[*protocol.AudioEnd](c); answer.ItemID == end.ItemID || answer.AudioMS < 1000 {
			t.Errorf("the answer is %+v", answer)
		}
	})
}

// TestRealtimeExactNotice: for a client of OpenAI's protocol the notice is an item of a response.
func TestRealtimeExactNotice(t *testing.T) {
	said := notice()
	overWires(t, setting{notice: noticeText, speech: said}, func(t *testing.T, _ string, st *stack) {
		c := st.realtime(t, "?model=gpt-realtime")
		done := c.wait("response.done")
		item := c.wait0("response.output_item.added").text("item.id")
		if done.text("response.status") != "completed" || !bytes.Equal(c.sound(item), said.clip.PCM) {
			t.Errorf("%d bytes arrived in %s", len(c.sound(item)), done.raw)
		}
		if got := c.words("response.output_audio_transcript.delta"); strings.TrimSpace(got) != noticeText {
			t.Errorf("the words are %q", got)
		}
	})
}

// TestPhoneExactNotice: a call begins with the notice: the caller hears it before the model hears the caller.
func TestPhoneExactNotice(t *testing.T) {
	inCall(t, func(s *setting) {
		s.phone.Announcement, s.speech = noticeText, notice()
	}, func(t *testing.T, _ string, st *stack, _ *rest) {
		c := st.call(t, "CA1")
		c.hear(2 * time.Second)
		c.settle(time.Second)
		c.mu.Lock()
		heard := audio.AppendFromULaw(nil, c.played)
		c.mu.Unlock()
		if like := likeness(t, heard, notice().clip.PCM); like < 0.9 {
			t.Errorf("the caller heard something else: the correlation with the notice is %.3f", like)
		}
		st.tap.mu.Lock()
		answered := len(st.tap.sound)
		st.tap.mu.Unlock()
		if answered > 0 {
			t.Errorf("the model said %d bytes before the caller", answered)
		}
		c.say(callerSpeech(time.Second))
		testutil.WaitUntil(t, "the model answers", func() bool { st.tap.mu.Lock(); defer st.tap.mu.Unlock(); return len(st.tap.sound) > 0 })
	})
}

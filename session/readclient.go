package session

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/transport"
)

// microphone is the user's audio on its way from the client to the uplink. Unless it says otherwise, the session's
// inbound guards it.
type microphone struct {
	clock     audioClock       // used concurrently
	resampler *audio.Resampler // nil if the rates are equal
	buf       []byte
	direct    transport.AudioIn
	again     int         // bytes that the client sends again; see beginAgain
	tooFastAt time.Time   // when the client was last told that its audio comes too fast
	dropped   int32       // frames dropped since then
	muted     atomic.Bool // the session ends and no longer listens

	aheadBytes atomic.Int64 // dropped because it came too fast

	flows      atomic.Bool // audio comes without a pause
	pauseWatch *time.Timer // checks whether audio still arrives; nil before the first; guarded by mu
}

// clientFrame takes one frame, which arrived after the time since; zero means that it arrived now.
// The caller must hold inbound.
func (s *session) clientFrame(f protocol.Frame, since time.Time) {
	if s.isOver() {
		return // including the rest of a flood, which gets no answers
	}
	if f.Audio {
		s.clientAudio(f.Data, since)
		return
	}
	if s.client.control == nil {
		s.client.control = rate.NewLimiter(controlRate, controlBurst)
	}
	if !s.client.control.Allow() {
		s.tooMany()
		return
	}
	m, err := protocol.ParseClient(f.Data)
	if err != nil {
		var bad *protocol.MessageError
		if errors.As(err, &bad) {
			s.complain(bad.Code, bad.Field, "%s", bad.Message)
		}
		return
	}
	if !s.client.control.AllowN(time.Now(), price(m)-1) {
		s.tooMany()
		return
	}
	s.clientMessage(m)
}

func (s *session) tooMany() {
	s.complain(protocol.CodeLimit, "", "Too many messages: the limit is %d units a second, and typed text takes the most units; this one was dropped.", controlRate)
}

// gone returns the cause for an error of the client's connection.
func gone(err error) *Cause {
	switch protocol.CloseStatus(err) {
	case protocol.CloseDone:
		return causeHungUp
	case protocol.CloseServerLeaving:
		return causeLeft
	}
	switch {
	case protocol.TooBig(err):
		return causeTooBig
	case protocol.Flooded(err):
		return causeFlood
	}
	return causeGone
}

// complain tells the client what it did wrong; too many complaints end the session.
func (s *session) complain(code, ref, format string, args ...any) {
	s.tellError(&protocol.Error{Code: code, Message: fmt.Sprintf(format, args...), Ref: ref})
}

// clientAudio takes one frame of the user's speech, which arrived after the time since. The caller
// must hold inbound.
func (s *session) clientAudio(pcm []byte, since time.Time) {
	rate := s.start.InputRate
	switch n := len(pcm); {
	case n == 0:
		s.complain(protocol.CodeInvalidAudio, "", "The audio frame is empty.")
		return
	case n%audio.BytesPerSample != 0:
		s.complain(protocol.CodeInvalidAudio, "", "The audio frame has %d bytes; PCM16 needs an even number. It was dropped.", n)
		return
	case n > audio.Bytes(rate, protocol.MaxFrameMS*time.Millisecond):
		s.complain(protocol.CodeInvalidAudio, "", "The audio frame is %d ms long; at most %d ms are taken. It was dropped.", audio.MS(rate, n), protocol.MaxFrameMS)
		return
	}
	now := s.opts.now()
	if last := s.mic.clock.newest(); !last.IsZero() {
		if hole := min(now.Sub(last), longestHole); hole > leastHole {
			s.up.afterHole(audio.Bytes(s.model.link().info().InputRate, hole))
		}
	}
	if ahead, ok := s.mic.clock.add(len(pcm), since, now, s.opts.Limits.AudioAhead); !ok {
		s.mic.aheadBytes.Add(int64(len(pcm)))
		s.tooFast(ahead)
		return
	}
	again := s.mic.again > 0
	s.mic.again = max(s.mic.again-len(pcm), 0)
	if s.mic.muted.Load() {
		return
	}
	s.audioFlows()
	if s.mic.resampler != nil {
		s.mic.buf = s.mic.resampler.Process(s.mic.buf[:0], pcm)
		pcm = s.mic.buf
	}
	if len(pcm) == 0 {
		return
	}
	if !s.sendDirect(pcm, again) {
		s.up.pushAudio(pcm, again)
	}
	if !s.manual() {
		s.listen(pcm)
	}
}

// tooFastEvery is how often a client is told that its audio comes too fast. A page or network that
// was held up delivers many frames at once, which must not end a session. A client that does not
// stop still exceeds floodErrors within floodWindow.
const tooFastEvery = floodWindow / (floodErrors + 5)

// tooFast records that a frame was dropped because the audio would be that far ahead.
func (s *session) tooFast(ahead time.Duration) {
	s.mic.dropped++
	if time.Since(s.mic.tooFastAt) < tooFastEvery {
		return
	}
	s.complain(protocol.CodeAudioTooFast, "", "The audio is %d ms ahead of real time; at most %d ms are taken. Frames dropped since the last such error: %d.",
		ahead.Milliseconds(), s.opts.Limits.AudioAhead.Milliseconds(), s.mic.dropped)
	s.mic.tooFastAt, s.mic.dropped = time.Now(), 0
}

// clientMessage takes one message.
func (s *session) clientMessage(m protocol.ClientMessage) {
	switch m := m.(type) {
	case *protocol.InputText:
		s.dispatch(orchestrator.UserText{ID: m.ID, Text: m.Text})
	case *protocol.InputImage:
		data, err := m.File()
		if err != nil { // ParseClient has read it before
			s.complain(protocol.CodeInvalidMessage, "data", "%v", err)
			return
		}
		s.dispatch(orchestrator.UserImage{MIME: m.MIME, Data: data})
	case *protocol.InputContext:
		s.dispatch(orchestrator.UserContext{Text: m.Text})
	case *protocol.InputActivity:
		if !s.manual() {
			s.complain(protocol.CodeInvalidMessage, "type", "input.activity needs a session that was started with turn_detection \"client\".")
			return
		}
		s.dispatch(orchestrator.UserActivity{Active: m.Active, AudioMS: s.mic.clock.ms()})
	case *protocol.Interrupt:
		s.dispatch(orchestrator.UserInterrupt{})
	case *protocol.Playback:
		s.acknowledged(m)
		s.dispatch(orchestrator.Played{Item: m.ItemID, MS: m.PlayedMS, Done: m.Done})
	case *protocol.End:
		s.dispatch(orchestrator.HungUp{})
	case *protocol.Ping:
		s.down.Acknowledged(m.Seq)
		s.tell(&protocol.Pong{T: m.T})
	case *protocol.Start:
		s.complain(protocol.CodeAlreadyStarted, "", "The session has already started; session.start comes once, first.")
	case *protocol.ConfirmationResolve:
		s.dispatch(orchestrator.ConfirmationAnswer{Token: m.Token, Approved: m.Approved})
	case *protocol.ToolResult:
		s.toolResult(m)
	}
}

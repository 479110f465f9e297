package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	phone "voicegw/gateway/phone"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

// Phone is a call on a Twilio media stream, with this program as the carrier and the caller, that translates for the
// engine. One goroutine may read and one may write; Abort and End are safe for concurrent use.
//
// The stream has audio, marks and clear. The ends of answers are not on the wire: an answer is over after answerGap of
// silence.
type Phone struct {
	// Fixed after the call was connected.
	CallSID, StreamSID string
	account            string
	conn               *ws.Conn
	note               func(text string)
	over               func() // forgets the call
	rest               []verb // the carrier follows them if the gateway closes the stream
	inbox              inbox
	helpers            sync.WaitGroup
	arrived            chan arrival  // from the reading goroutine; never closed
	woken              chan struct{} // from the writer to the reader; capacity 1, never closed
	gone               chan struct{} // closed by Abort
	abort              sync.Once

	// Owned by the reader.
	begun  bool  // session.start was translated, which comes before the gateway's audio
	failed error // why the stream ended; final

	// Owned by the writer.
	frames int64 // sent
	ulaw   []byte

	mu    sync.Mutex // guards the following fields
	state phoneState
	seq   int64
}

// arrival is a message of the gateway, or the error that ended the connection.
type arrival struct {
	data []byte
	err  error
}

// phoneRate is the sample rate of phones in Hz, in both directions.
const phoneRate = phone.Rate

func newPhone(conn *ws.Conn, c call, note func(string), over func()) *Phone {
	p := &Phone{CallSID: c.sid, StreamSID: c.stream, account: c.account, conn: conn, note: note, over: over,
		arrived: make(chan arrival), woken: make(chan struct{}, 1), gone: make(chan struct{})}
	p.helpers.Go(p.pump)
	return p
}

// pump passes the gateway's messages to Read, which also waits for the clock.
func (p *Phone) pump() {
	for {
		_, data, err := p.conn.Read()
		select {
		case p.arrived <- arrival{bytes.Clone(data), err}:
		case <-p.gone:
			return
		}
		if err != nil {
			return
		}
	}
}

// greet begins the stream.
func (p *Phone) greet(c call) error {
	return errors.Join(
		p.send(&phone.Message{Event: phone.EventConnected, Protocol: "Call", Version: "1.0.0"}),
		p.send(&phone.Message{Event: phone.EventStart, StreamSID: c.stream, Start: &phone.Start{
			AccountSID: c.account, CallSID: c.sid, StreamSID: c.stream, Tracks: []string{phone.TrackInbound},
			CustomParameters: c.parameters,
			MediaFormat:      phone.MediaFormat{Encoding: phone.EncodingULaw, SampleRate: phoneRate, Channels: 1},
		}}))
}

// send numbers and sends a message.
func (p *Phone) send(m *phone.Message) error {
	if m.Event != phone.EventConnected {
		m.SequenceNumber = strconv.FormatInt(p.number(), 10)
	}
	data, err := phone.Encode(m)
	if err != nil {
		return err
	}
	return p.conn.Write(websocket.MessageText, data)
}

func (p *Phone) number() (n int64) {
	p.locked(func() {
		p.seq++
		n = p.seq
	})
	return n
}

func (p *Phone) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// Read returns the next frame of voicegw.v1.
func (p *Phone) Read() (protocol.Frame, error) {
	for {
		f, ok, err := p.inbox.next()
		if ok || err != nil {
			return f, err
		}
		if p.failed != nil {
			return f, fmt.Errorf("read from the stream: %w", p.failed)
		}
		arrived := p.arrived
		if !p.begun {
			arrived = nil
		}
		select {
		case a := <-arrived:
			if p.failed = a.err; a.err == nil {
				p.failed = p.hear(a.data)
			}
		case <-p.woken:
			p.begun = true
		case <-p.gone:
			p.failed = net.ErrClosed
		}
		if p.failed != nil {
			p.close()
		}
	}
}

// close handles the end of the stream. If the gateway has closed it, the carrier follows the rest of its document.
func (p *Phone) close() {
	rest := p.rest
	p.locked(func() {
		if p.state.reason != "" {
			rest = nil
		}
		p.state.closed(p.failed, &p.inbox)
	})
	for _, v := range rest {
		p.note(v.inWords())
	}
}

func (p *Phone) hear(data []byte) error {
	m, err := phone.Parse(data)
	if err != nil {
		return wrong(data, "%w", err)
	}
	if m.StreamSID != p.StreamSID {
		return wrong(data, "the streamSid is not %s", p.StreamSID)
	}
	before, after := false, false
	p.locked(func() {
		before = p.state.open
		err = p.state.hear(time.Now(), m, &p.inbox)
		after = p.state.open
	})
	switch {
	case err != nil:
		return wrong(data, "%w", err)
	case after && !before:
		p.note("the gateway speaks")
	case before && !after:
		p.note("the gateway clears the rest")
	}
	return nil
}

// WriteAudio sends the marks and the key that are due, and then a frame of the caller's speech.
func (p *Phone) WriteAudio(pcm []byte) error {
	var due []*phone.Message
	over, spoke := false, time.Duration(0)
	p.locked(func() {
		over = p.state.open
		due = p.state.tick(time.Now(), &p.inbox)
		over, spoke = over && !p.state.open, audio.Duration(phoneRate, p.state.bytes)
	})
	if over {
		p.note("the gateway has spoken for " + spoke.Round(100*time.Millisecond).String())
	}
	if !p.inbox.empty() {
		select {
		case p.woken <- struct{}{}:
		default: // it is woken already
		}
	}
	for _, m := range due {
		m.StreamSID = p.StreamSID
		if err := p.send(m); err != nil {
			return err
		}
	}
	p.ulaw = audio.AppendULaw(p.ulaw[:0], pcm)
	m := ws.NewMessage()
	m.B = append(m.B, `{"event":"media","sequenceNumber":"`...)
	m.B = strconv.AppendInt(m.B, p.number(), 10)
	m.B = append(append(m.B, `","streamSid":"`...), p.StreamSID...)
	m.B = append(m.B, `","media":{"track":"inbound","chunk":"`...)
	m.B = strconv.AppendInt(m.B, p.frames+1, 10)
	m.B = append(m.B, `","timestamp":"`...)
	m.B = strconv.AppendInt(m.B, p.frames*phone.FrameMS, 10)
	m.B = append(audio.AppendBase64(append(m.B, `","payload":"`...), p.ulaw), `"}}`...)
	p.frames++
	return p.conn.Send(websocket.MessageText, m)
}

// WriteText translates a message of voicegw.v1. A typed text presses keys.
func (p *Phone) WriteText(message []byte) error {
	m, err := protocol.ParseClient(message)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *protocol.Start:
		p.inbox.say(&protocol.SessionStarted{SessionID: p.CallSID, InputRate: m.InputRate, OutputRate: m.OutputRate})
		p.woken <- struct{}{} // it is the first message
	case *protocol.InputText:
		if err := CheckKeys(m.Text); err != nil {
			return err
		}
		p.locked(func() { p.state.keys += m.Text })
		p.note("the caller presses " + m.Text)
	case *protocol.Playback: // the carrier's own clock answers the marks
	case *protocol.End:
		p.note("the caller hangs up")
		p.End("client_ended")
	default:
		return fmt.Errorf("a phone has no message like %T", m)
	}
	return nil
}

// End ends the stream with a reason of session.ended, without waiting for the gateway.
func (p *Phone) End(reason string) {
	first := false
	p.locked(func() {
		if first = p.state.reason == ""; first {
			p.state.reason = reason
		}
	})
	if !first {
		return
	}
	p.over()
	stop := &phone.Message{Event: phone.EventStop, StreamSID: p.StreamSID, Stop: &phone.Stop{AccountSID: p.account, CallSID: p.CallSID}}
	p.helpers.Go(func() {
		if p.send(stop) == nil { // otherwise the connection is closed already
			_ = p.conn.Close(websocket.StatusNormalClosure, "") // the reader gets the gateway's answer
		}
	})
}

// Abort drops the connection without a close frame and waits for the goroutines.
func (p *Phone) Abort() {
	p.abort.Do(func() { close(p.gone) })
	p.over()
	_ = p.conn.CloseNow() // it may be closed
	p.helpers.Wait()
}

// CheckKeys reports why a text cannot be pressed on a phone.
func CheckKeys(text string) error {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !phone.IsKey(string(r)) }) {
		return fmt.Errorf("a phone has the keys 0 to 9, *, # and A to D, not %q", text)
	}
	return nil
}

const (
	// answerGap is the silence after which an answer is over: longer than the pauses of a model that works.
	answerGap = 1500 * time.Millisecond
	// keyGap is the time between two keys.
	keyGap   = 200 * time.Millisecond
	maxMarks = 10_000
)

// phoneState is the carrier's and the caller's side of a stream, by the clock. It has no connection, and is not safe
// for concurrent use.
type phoneState struct {
	until time.Time // when everything that arrived will have been played
	marks []duemark // outstanding, in order
	keys  string    // not yet pressed
	keyAt time.Time // when the next one is pressed
	n     int       // answers so far
	bytes int       // of the current answer
	open  bool      // an answer is being heard

	reason string // of session.ended; empty during the call
	over   bool   // session.ended was said
}

type duemark struct {
	name string
	at   time.Time
}

func (s *phoneState) id() string { return "answer_" + strconv.Itoa(s.n) }

func (s *phoneState) hear(now time.Time, m *phone.Message, to *inbox) error {
	switch m.Event {
	case phone.EventMedia:
		ulaw, err := audio.AppendFromBase64(nil, []byte(m.Media.Payload))
		if err != nil {
			return err
		}
		s.sound(now, audio.AppendFromULaw(nil, ulaw), to)
	case phone.EventMark:
		if len(s.marks) == maxMarks {
			return fmt.Errorf("more than %d marks are outstanding", maxMarks)
		}
		s.marks = append(s.marks, duemark{m.Mark.Name, later(s.until, now)})
	case phone.EventClear:
		s.until = now
		for i := range s.marks {
			if s.marks[i].at.After(now) {
				s.marks[i].at = now
			}
		}
		if s.open {
			s.open = false
			to.say(&protocol.AudioFlush{Header: inTurn(s.n), ItemID: s.id(), Reason: "user_speech"},
				&protocol.TurnEnded{Header: inTurn(s.n), Status: "interrupted"})
		}
	default:
		return errors.New("it is not a message for a carrier")
	}
	return nil
}

func (s *phoneState) sound(now time.Time, pcm []byte, to *inbox) {
	if !s.open {
		s.open, s.bytes = true, 0
		s.n++
		to.say(&protocol.TurnStarted{Header: inTurn(s.n)}, &protocol.AudioStart{Header: inTurn(s.n), ItemID: s.id()})
	}
	s.bytes += len(pcm)
	s.until = later(s.until, now).Add(audio.Duration(phoneRate, len(pcm)))
	to.sound(pcm)
}

// tick returns the messages that are due: the marks whose audio was played, and the next key.
func (s *phoneState) tick(now time.Time, to *inbox) (due []*phone.Message) {
	for len(s.marks) > 0 && !s.marks[0].at.After(now) {
		due = append(due, &phone.Message{Event: phone.EventMark, Mark: &phone.Mark{Name: s.marks[0].name}})
		s.marks = s.marks[1:]
	}
	if s.keys != "" && !now.Before(s.keyAt) {
		due = append(due, &phone.Message{Event: phone.EventDTMF, DTMF: &phone.DTMF{Track: "inbound_track", Digit: s.keys[:1]}})
		s.keys, s.keyAt = s.keys[1:], now.Add(keyGap)
	}
	if s.open && now.Sub(s.until) >= answerGap {
		s.end(to)
	}
	return due
}

// end says that the answer is over.
func (s *phoneState) end(to *inbox) {
	s.open = false
	to.say(&protocol.AudioEnd{Header: inTurn(s.n), ItemID: s.id(), AudioMS: audio.MS(phoneRate, s.bytes)},
		&protocol.TurnEnded{Header: inTurn(s.n), Status: "completed"})
}

// closed says that the session has ended, if its end was in order: a side hung up, or the gateway closed the stream.
func (s *phoneState) closed(err error, to *inbox) {
	if s.reason == "" && websocket.CloseStatus(err) == websocket.StatusNormalClosure {
		s.reason = "stream_closed"
	}
	if s.open && s.reason == endedByModel {
		s.end(to)
	}
	if s.reason != "" && !s.over {
		s.over = true
		to.say(&protocol.SessionEnded{Reason: s.reason})
	}
}

// endedByModel is the reason of session.ended for a session whose model hung up. On a phone the gateway has ended or
// transferred the call over the REST API.
const endedByModel = "tool_ended"

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

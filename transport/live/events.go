package live

import (
	"bytes"
	"math"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/internal/openaiwire"
	"voicegw/transport"
)

func (c *conn) take(frame []byte) {
	if _, sound, ok := openaiwire.ReadAudio(frame, livewire.AudioDelta, "delta"); ok {
		c.sound(sound)
		c.book(max(c.booked, 1)) // the session knows early that its seconds are reported
	} else {
		c.event(frame)
	}
	if c.failed != nil {
		return
	}
	c.follow()
	if err := c.t.TooManyEvents(len(c.dialog.Pending())); err != nil {
		c.over(err, c.feed.seconds())
	}
}

// follow starts the work that the frame has made due.
func (c *conn) follow() {
	speaks := c.dialog.phrases != c.phrases
	c.phrases = c.dialog.phrases
	c.delegations.follow(c.dialog.requests(), c.dialog.reminders(), speaks)
	c.dialog.working = c.delegations.busy() || c.toldNow()
}

var zeros = bytes.Repeat([]byte("A"), 100*bytesPerMS/3*4)

// sound takes audio in base64. Digital silence in a silence is not decoded.
func (c *conn) sound(sound []byte) {
	if n := len(sound); n%4 == 0 && n <= len(zeros) && bytes.Equal(sound, zeros[:n]) && n/4*3%2 == 0 && c.dialog.silence(n/4*3) {
		c.pcm = nil
		return
	}
	pcm, err := audio.AppendFromBase64(c.pcm[:0], sound)
	if err != nil || len(pcm)%audio.BytesPerSample != 0 {
		c.malformed.Add(1)
		return
	}
	if c.pcm = pcm; len(pcm) > 0 {
		c.dialog.sound(pcm)
	}
}

func (c *conn) event(frame []byte) {
	ev, err := livewire.ParseServerEvent(frame)
	if err != nil || ev.Type == "" {
		c.malformed.Add(1)
		return
	}
	switch ev.Type {
	case livewire.AudioDelta:
		c.slow.Add(1)
		c.sound(ev.Sound)
	case livewire.OutputTranscript:
		c.dialog.said(ev.Delta, ev.StartMS, ev.EndMS)
		c.delegations.note(&c.dialog)
	case livewire.InputTranscript:
		c.dialog.heard(ev.Delta, ev.StartMS, ev.EndMS)
		c.delegations.note(&c.dialog)
	case livewire.DelegationCreated:
		c.delegated(&ev)
	case livewire.InstructionsAppended, livewire.ThinkingAppended, livewire.CommentaryAppended:
		c.delegations.placed(ev.ClientID, ev.Type)
	case livewire.FixturePlaying:
		c.delegations.begun(c)
		c.dialog.playing()
	case livewire.FixturePlayed:
		c.played()
	case livewire.UsageUpdated:
		c.book(int64(math.Floor(min(max(ev.Usage.Seconds, 0), maxSeconds))))
	case livewire.Failed:
		c.problem(ev.Error, ev.ClientID)
	case livewire.Closed:
		c.over(c.closedBy(ev.Reason), max(int64(math.Ceil(min(max(ev.Usage.Seconds, 0), maxSeconds))), c.booked))
	default:
		if !livewire.Known(ev.Type) {
			c.unknowns.Saw(&c.t.Service, ev.Type)
		}
	}
}

// maxSeconds bounds a report of usage: a session lasts two hours.
const maxSeconds = 24 * 3600

// maxID bounds the id of a delegation in bytes: several are remembered.
const maxID = 512

func (c *conn) delegated(ev *livewire.ServerEvent) {
	id, target := ev.Delegation.ID, ev.Delegation.Target
	switch {
	case target != "" && target != livewire.DelegateToClient, id == "", len(id) > maxID:
	case remember(&c.known, id): // it was announced before
	case !c.dialog.delegated(id, ev.OffsetMS):
		go c.delegations.refuse(id)
	}
}

// problem handles an error event, which leaves the session open.
func (c *conn) problem(e *livewire.Failure, clientID string) {
	if e == nil {
		c.malformed.Add(1)
		return
	}
	if clientID == "" {
		clientID = e.ClientID
	}
	if c.delegations.refused(clientID, e) {
		return
	}
	if clientID == exactID {
		c.played()
	}
	kind := transport.KindOfCode(e.Code, e.Type)
	switch {
	case e.Code == livewire.CodeMissingScope, e.Code == livewire.CodeContextIncomplete:
		kind = transport.KindIgnore
	case kind == transport.KindAuth, kind == transport.KindQuota, kind == transport.KindExpired, kind == transport.KindFiltered:
		c.doom = kind
	case kind == 0 || kind == transport.KindInvalid:
		kind = transport.KindRefused
	}
	c.dialog.Add(transport.Problem{Err: c.t.reported("recv", kind, e)})
}

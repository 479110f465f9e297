package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"voicegw/protocol"
)

// heartbeat is how often a stream of events that is open says that it lives, in a comment
// which every reader of events skips. Proxies close what is silent for a minute, some sooner.
const heartbeat = 10 * time.Second

// eventWriter writes server-sent events (html.spec.whatwg.org, section 9.2, read 2026-11-21).
// The head is sent with the first one. From then on a goroutine beats until close, which must
// be called before the handler returns. write may be called by any number of goroutines.
//
// A client that is gone ends the request's context, which ends the turn: errors of writing
// need no other care.
type eventWriter struct {
	// Fixed after newEventWriter.
	w     http.ResponseWriter
	flush *http.ResponseController

	// writing is held by who writes, and guards the following fields. A channel and no
	// mutex, because a client that takes nothing may let a writer wait for a minute.
	writing chan struct{}
	stop    chan struct{} // closed by close; nil while the stream is not open
	over    chan struct{} // closed by beat when it has ended
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, flush: http.NewResponseController(w), writing: make(chan struct{}, 1)}
}

// write writes whole events, with their ends.
func (e *eventWriter) write(events string) {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	if e.stop == nil {
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies are not to collect it
		h.Set("X-Content-Type-Options", "nosniff")
		e.w.WriteHeader(http.StatusOK)
		e.stop, e.over = make(chan struct{}), make(chan struct{})
		go e.beat(e.stop, e.over)
	}
	_, _ = io.WriteString(e.w, events)
	_ = e.flush.Flush()
}

// data writes one event that has nothing but data.
func (e *eventWriter) data(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // strings, numbers and messages of ours: it cannot fail
	}
	e.write("data: " + string(text) + "\n\n")
}

// beat writes a comment again and again.
func (e *eventWriter) beat(stop <-chan struct{}, over chan<- struct{}) {
	defer close(over)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.write(": still at work\n\n")
		case <-stop:
			return
		}
	}
}

// close ends the heartbeat. Nothing is written after it.
func (e *eventWriter) close() {
	e.writing <- struct{}{}
	stop, over := e.stop, e.over
	<-e.writing
	if stop != nil {
		close(stop)
		<-over
	}
}

// eventStream writes messages as voicegw.v1 has them, an event each.
type eventStream struct {
	out *eventWriter
	seq int64
}

// send writes one message.
func (e *eventStream) send(m protocol.ServerMessage) {
	e.seq++
	text, err := protocol.EncodeServer(e.seq, m)
	if err != nil {
		return // the tests of package protocol encode every message
	}
	e.out.write("id: " + strconv.FormatInt(e.seq, 10) + "\nevent: " + protocol.HeaderOf(m).Type + "\ndata: " + string(text) + "\n\n")
}

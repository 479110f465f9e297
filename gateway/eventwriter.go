package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"voicegw/protocol"
)

// heartbeat is how often an open stream of events sends a comment, which every reader of events
// skips. Proxies close a connection that is silent for a minute, some sooner.
const heartbeat = 10 * time.Second

// eventWriter writes server-sent events (html.spec.whatwg.org, section 9.2, read 2026-11-21).
// The head is sent with the first one. From then on a goroutine sends heartbeats until close,
// which must be called before the handler returns. write may be called concurrently.
//
// A client that is gone ends the request's context, which ends the turn: so errors of writing
// are ignored.
type eventWriter struct {
	// Fixed after newEventWriter.
	w     http.ResponseWriter
	flush *http.ResponseController

	// writing is held by the goroutine that writes, and guards the following fields. It is a
	// channel and not a mutex, because a slow client may block a writer for a minute.
	writing chan struct{}
	stop    chan struct{} // closed by close; nil while the stream is not open
	over    chan struct{} // closed by beat when it returns
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
		h.Set("X-Accel-Buffering", "no") // proxies must not buffer it
		h.Set("X-Content-Type-Options", "nosniff")
		e.w.WriteHeader(http.StatusOK)
		e.stop, e.over = make(chan struct{}), make(chan struct{})
		go e.beat(e.stop, e.over)
	}
	_, _ = io.WriteString(e.w, events)
	_ = e.flush.Flush()
}

// data writes one event that has only data.
func (e *eventWriter) data(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // strings, numbers and messages of ours: it cannot fail
	}
	e.write("data: " + string(text) + "\n\n")
}

// beat writes a comment at each heartbeat.
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

// eventStream writes the messages of voicegw.v1, an event each.
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

package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"voicegw/protocol"
)

// heartbeat is the interval of comments in a stream. Proxies close connections that are silent for a minute, or less.
const heartbeat = 10 * time.Second

// eventWriter writes server-sent events (html.spec.whatwg.org, section 9.2, read 2026-11-21). The first one sends the
// headers and starts the heartbeats, which close ends. write is safe for concurrent use. Write errors are ignored: a
// client that leaves ends the request's context.
type eventWriter struct {
	w     http.ResponseWriter
	flush *http.ResponseController

	// writing is held while writing, and guards the fields below. A slow client may block a writer for a minute.
	writing chan struct{}
	stop    chan struct{} // closed by close; nil before the stream opens
	over    chan struct{} // closed when beat returns
}

func newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{w: w, flush: http.NewResponseController(w), writing: make(chan struct{}, 1)}
}

func (e *eventWriter) write(events string) {
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	if e.stop == nil {
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // disables buffering in proxies
		h.Set("X-Content-Type-Options", "nosniff")
		e.w.WriteHeader(http.StatusOK)
		e.stop, e.over = make(chan struct{}), make(chan struct{})
		go e.beat(e.stop, e.over)
	}
	_, _ = io.WriteString(e.w, events)
	_ = e.flush.Flush()
}

func (e *eventWriter) data(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		return // own types: cannot fail
	}
	e.write("data: " + string(text) + "\n\n")
}

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

// close ends the heartbeats. Nothing may be written afterwards.
func (e *eventWriter) close() {
	e.writing <- struct{}{}
	stop, over := e.stop, e.over
	<-e.writing
	if stop != nil {
		close(stop)
		<-over
	}
}

type eventStream struct {
	out *eventWriter
	seq int64
}

func (e *eventStream) send(m protocol.ServerMessage) {
	e.seq++
	text, err := protocol.EncodeServer(e.seq, m)
	if err != nil {
		return // every message encodes: tested in package protocol
	}
	e.out.write("id: " + strconv.FormatInt(e.seq, 10) + "\nevent: " + protocol.HeaderOf(m).Type + "\ndata: " + string(text) + "\n\n")
}

package openai

import "voicegw/transport"

// eventQueue holds the events of a frame until Recv returns them. One frame produces few.
type eventQueue struct {
	pending []transport.Event
	given   int // number of pending that were returned
}

func (q *eventQueue) len() int { return len(q.pending) - q.given }

func (q *eventQueue) add(ev transport.Event) { q.pending = append(q.pending, ev) }

// next returns the next event, or nil.
func (q *eventQueue) next() transport.Event {
	if q.given == len(q.pending) {
		if q.given > 0 {
			clear(q.pending)
			q.pending, q.given = q.pending[:0], 0
		}
		return nil
	}
	ev := q.pending[q.given]
	q.given++
	return ev
}

package execute

import "slices"

// maxParallel is how many calls of one conversation run at once; others wait in line.
const maxParallel = 4

// place is a call's place among those that run, or in the line for one.
type place struct {
	free chan struct{} // closed when the place among those that run is the call's
}

// line hands out the places of a conversation, in the order asked for. It is guarded
// by Calls.mu.
type line struct {
	taken   int      // places among those that run
	waiting []*place // the next one first
}

// join takes a place, or one in the line. Leave it.
func (l *line) join() *place {
	p := &place{free: make(chan struct{})}
	if l.taken == maxParallel {
		l.waiting = append(l.waiting, p)
		return p
	}
	l.taken++
	close(p.free)
	return p
}

// leave gives a place up, wherever it is; one among those that run goes to the next.
func (l *line) leave(p *place) {
	if i := slices.Index(l.waiting, p); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	if len(l.waiting) == 0 {
		l.taken--
		return
	}
	close(l.waiting[0].free)
	l.waiting = slices.Delete(l.waiting, 0, 1)
}

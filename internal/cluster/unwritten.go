package cluster

// unwritten are the changes of a record that are not in the store, and who waits until they are. The
// mutex of its place guards it.
type unwritten struct {
	changed bool            // since the last write began
	writes  bool            // a write has begun and not ended
	next    []chan struct{} // to close when a write has ended that has what changed
	now     []chan struct{} // to close when the write that has begun ends
	never   bool            // nothing more is written
}

// written returns a channel that is closed when everything that has changed is in the store, or never
// will be.
func (u *unwritten) written() <-chan struct{} {
	done := make(chan struct{})
	switch {
	case u.never:
		close(done)
	case u.changed:
		u.next = append(u.next, done)
	case u.writes:
		u.now = append(u.now, done)
	default:
		close(done)
	}
	return done
}

// awaited reports whether somebody waits for a write that has not begun.
func (u *unwritten) awaited() bool { return len(u.next) > 0 }

// begin takes what has changed for a write.
func (u *unwritten) begin() {
	u.changed, u.writes = false, true
	u.now, u.next = append(u.now, u.next...), nil
}

// end takes the end of the write. After one that failed for now, another one is to follow.
func (u *unwritten) end(again bool) {
	u.writes = false
	if again && !u.never {
		u.changed, u.next, u.now = true, append(u.now, u.next...), nil
		return
	}
	closeAll(u.now)
	u.now = nil
}

// stop records that nothing more is written.
func (u *unwritten) stop() {
	u.never = true
	closeAll(u.now)
	closeAll(u.next)
	u.now, u.next = nil, nil
}

func closeAll(channels []chan struct{}) {
	for _, c := range channels {
		close(c)
	}
}

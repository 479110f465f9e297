package cluster

// unwritten tracks a record's changes that are not in the store, and their waiters. The mutex of its place guards it.
type unwritten struct {
	changed bool            // since the last write began
	writes  bool            // a write is in progress
	next    []chan struct{} // closed after a write that includes the latest change
	now     []chan struct{} // closed when the current write ends
	never   bool            // nothing more will be written
}

// written returns a channel that is closed when all changes are stored or never will be.
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

func (u *unwritten) awaited() bool { return len(u.next) > 0 }

func (u *unwritten) begin() {
	u.changed, u.writes = false, true
	u.now, u.next = append(u.now, u.next...), nil
}

// end marks the end of the write; again means it will be retried.
func (u *unwritten) end(again bool) {
	u.writes = false
	if again && !u.never {
		u.changed, u.next, u.now = true, append(u.now, u.next...), nil
		return
	}
	closeAll(u.now)
	u.now = nil
}

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

package audit

import (
	"slices"
	"sync"
	"time"
)

// Unwritten holds records until a [Log] has written them, so that a process knows which would be lost if it died. The
// zero value is ready for use. Its methods may be called concurrently.
type Unwritten struct {
	mu      sync.Mutex // guards the following field
	records []*Record
}

// Add sets r.Written and holds r; it returns the number of records held. The caller then passes a copy of *r to
// [Log.Write], whose queue bounds that number.
func (u *Unwritten) Add(r *Record) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.Written = make(chan struct{})
	u.records = append(u.unwritten(), r)
	return len(u.records)
}

// Records returns the records that may not be written yet, oldest first.
func (u *Unwritten) Records() []*Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.unwritten())
}

// Wait waits until the records added so far are written, at most for limit. It returns the number of unwritten records.
func (u *Unwritten) Wait(limit time.Duration) int {
	waits := u.Records()
	late := time.NewTimer(limit)
	defer late.Stop()
	for i, r := range waits {
		select {
		case <-r.Written:
		case <-late.C:
			return len(waits) - i
		}
	}
	return 0
}

// unwritten drops the written records and returns the rest. The caller must hold mu.
func (u *Unwritten) unwritten() []*Record {
	u.records = slices.DeleteFunc(u.records, func(r *Record) bool {
		select {
		case <-r.Written:
			return true
		default:
			return false
		}
	})
	return u.records
}

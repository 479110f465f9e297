package session

import (
	"sync"
	"testing"

	"voicegw/internal/audit"
)

// records collects audit records.
type records struct {
	mu  sync.Mutex // guards the following fields
	all []audit.Record
	// held makes the records wait in the queue of the audit.
	held bool
}

// hold(true) delays the following records; hold(false) writes the delayed ones.
func (r *records) hold(hold bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held && !hold {
		for _, one := range r.all {
			r.written(one)
		}
	}
	r.held = hold
}

// written informs the session that a record left the queue. The caller must hold mu.
func (*records) written(one audit.Record) {
	if one.Written == nil {
		return
	}
	select {
	case <-one.Written:
	default:
		close(one.Written)
	}
}

func (r *records) add(one audit.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
	if !r.held {
		r.written(one)
	}
}

// list returns the records so far.
func (r *records) list() []audit.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]audit.Record(nil), r.all...)
}

// byCall returns the tools' records by call, and fails the test if a call has two.
func (r *records) byCall(t *testing.T) map[string]audit.Record {
	t.Helper()
	calls := map[string]audit.Record{}
	for _, one := range r.list() {
		if one.Event != audit.EventTool {
			continue
		}
		if _, twice := calls[one.CallID]; twice {
			t.Errorf("%s is audited twice", one.CallID)
		}
		calls[one.CallID] = one
	}
	return calls
}

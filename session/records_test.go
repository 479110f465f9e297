package session

import (
	"sync"
	"testing"

	"voicegw/internal/audit"
)

// records collects what is audited.
type records struct {
	mu  sync.Mutex // guards the following fields
	all []audit.Record
	// held means that the records wait in the queue of the audit.
	held bool
}

// hold makes the following records wait; false writes those that wait.
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

// written tells the session that a record is out of the queue. The caller must hold mu.
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

// byCall returns the records of tools by call, and fails the test if a call has two.
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

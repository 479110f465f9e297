package session

import (
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator"
)

// auditTrail is the session's unfinished audit records. The session's mu guards it.
type auditTrail struct {
	unwritten audit.Unwritten // records that the audit log may not have written; used concurrently
	telling   *audit.Record   // the record that the next command makes true; nil without one
}

// auditDecision writes an audit record, at once or when its answer is sent, and settles the approved action of the
// record. The caller must hold mu.
func (s *session) auditDecision(a orchestrator.Audit) {
	if a.Record.Event == audit.EventTool && a.Record.Reference != "" {
		s.calls.Settle(a.Record.Reference)
	}
	s.addRecord(&a.Record)
	if a.Told {
		s.records.telling = &a.Record
		return
	}
	s.audit(a.Record)
}

// addRecord keeps a record until the audit log has written it. The caller must hold mu.
func (s *session) addRecord(r *audit.Record) {
	if s.opts.Audit != nil && s.records.unwritten.Add(r) > orchestrator.MaxUnsent {
		s.log().Warn("the audit log is slow: the session's oldest unwritten record is lost if this gateway dies now",
			"records", orchestrator.MaxUnsent)
	}
}

// auditWait is how long an ended session stays in the directory for records that the audit log has not written: if
// this process dies, the next one writes them from the checkpoint.
const auditWait = 5 * time.Second

func (s *session) waitForAudit(limit time.Duration) {
	if left := s.records.unwritten.Wait(limit); left > 0 {
		s.log().Warn("the session leaves this gateway before the audit log has written its last records", "records", left)
	}
}

// audit writes a record. It may be called concurrently.
func (s *session) audit(r audit.Record) {
	if s.opts.Audit != nil {
		s.opts.Audit(s.identified(r))
	}
}

// undelivered returns the record of an answer that will not reach the model, because the connection broke or the
// session is over.
func undelivered(r *audit.Record) audit.Record {
	u := *r
	u.Delivered, u.NotDelivered = false, "not_sent"
	return u
}

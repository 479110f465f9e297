package load

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"voicegw/client/load/report"
	"voicegw/internal/audit"
)

// ledger records the tool calls that callers saw, for a comparison with the gateway's audit. It is safe for
// concurrent use.
type ledger struct {
	mu       sync.Mutex // guards the following fields
	sessions map[string]bool
	calls    map[audited]bool
}

type audited struct{ session, id string }

type carriedOut struct {
	action string
	by     audited
}

// maxLedger bounds the recorded calls; later ones are not compared.
const maxLedger = 1_000_000

func newLedger() *ledger { return &ledger{sessions: map[string]bool{}, calls: map[audited]bool{}} }

func (l *ledger) saw(session, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) < maxLedger {
		l.sessions[session] = true
		l.calls[audited{session, id}] = true
	}
}

const auditTime = 5 * time.Second

// compare reads the audit until nothing is missing, for at most auditTime.
func (l *ledger) compare(ctx context.Context, path string, progress func(Status)) *report.Audit {
	var a *report.Audit
	wait(ctx, progress, "until the audit is complete", auditTime, func() bool {
		a = l.read(ctx, path)
		return a.Problem != "" || a.Found >= a.Expected
	})
	return a
}

func (l *ledger) read(ctx context.Context, path string) *report.Audit {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &report.Audit{File: path, Expected: int64(len(l.calls))}
	found, actions := map[audited]bool{}, map[string]bool{}
	carried := map[carriedOut]bool{} // a gateway that died may have logged a call twice
	_, err := audit.ReadFiles(ctx, path, func(r audit.Record, _ []byte) error {
		c := audited{r.SessionID, r.CallID}
		if r.Event != audit.EventTool || !l.sessions[r.SessionID] {
			return nil
		}
		if l.calls[c] {
			found[c] = true
		}
		if r.BusinessKey != "" && r.OK && !r.CacheHit {
			action := r.ToolID + " " + r.BusinessKey
			actions[action], carried[carriedOut{action, c}] = true, true
		}
		return nil
	})
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && a.Expected == 0) {
		a.Problem = err.Error()
	}
	a.Found, a.Twice = int64(len(found)), int64(len(carried)-len(actions))
	return a
}

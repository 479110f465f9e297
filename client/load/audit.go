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

// ledger remembers which calls of tools the callers saw, to hold them against the
// gateway's audit. Any number of goroutines may use it.
type ledger struct {
	mu       sync.Mutex // guards the following fields
	sessions map[string]bool
	calls    map[call]bool
}

// call is a tool.ended.
type call struct{ session, id string }

// maxLedger bounds the calls that are remembered; those after it are not looked for.
const maxLedger = 1_000_000

func newLedger() *ledger { return &ledger{sessions: map[string]bool{}, calls: map[call]bool{}} }

// saw notes a tool.ended.
func (l *ledger) saw(session, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) < maxLedger {
		l.sessions[session] = true
		l.calls[call{session, id}] = true
	}
}

// auditTime is how long the gateway may take to write what it has done.
const auditTime = 5 * time.Second

// compare reads the audit until nothing is missing in it, or for some seconds.
func (l *ledger) compare(ctx context.Context, path string, tell func(Status)) *report.Audit {
	var a *report.Audit
	wait(ctx, tell, "until the audit is complete", auditTime, func() bool {
		a = l.read(ctx, path)
		return a.Problem != "" || a.Found >= a.Expected
	})
	return a
}

// read holds the calls against the audit as it stands.
func (l *ledger) read(ctx context.Context, path string) *report.Audit {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &report.Audit{File: path, Expected: int64(len(l.calls))}
	found := map[call]bool{}
	deeds := map[string]map[call]bool{} // the calls of each that have done it
	_, err := audit.ReadFiles(ctx, path, func(r audit.Record, _ []byte) error {
		c := call{r.SessionID, r.CallID}
		if r.Event != audit.EventTool || !l.sessions[r.SessionID] {
			return nil
		}
		if l.calls[c] {
			found[c] = true
		}
		if r.BusinessKey != "" && r.OK && !r.CacheHit {
			deed := r.ToolID + " " + r.BusinessKey
			if deeds[deed] == nil {
				deeds[deed] = map[call]bool{}
			}
			deeds[deed][c] = true // a call may stand there twice after the death of a gateway
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.Expected == 0:
	case err != nil:
		a.Problem = err.Error()
	}
	a.Found = int64(len(found))
	for _, by := range deeds {
		a.Twice += int64(len(by) - 1)
	}
	return a
}

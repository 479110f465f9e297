package gateway

import (
	"context"
	"net/http"
	"time"

	"voicegw/store"
)

// Approvals lists approved actions with unknown outcomes; *store.Approvals implements it. It must be safe for
// concurrent use.
type Approvals interface {
	// Open returns them, oldest first.
	Open(ctx context.Context, now time.Time) ([]store.Approval, error)
}

// maxApprovals limits the list; the answer's total is not limited.
const maxApprovals = 1000

type approvalsAnswer struct {
	Approvals []store.Approval `json:"approvals"`
	Total     int              `json:"total"`
}

// approvals lists the approved actions with unknown outcomes.
func (s operatorAPI) approvals(w http.ResponseWriter, r *http.Request) {
	list, err := s.opts.Approvals.Open(r.Context(), time.Now())
	if err != nil {
		s.storeFailed(w, "listing open approvals failed", err)
		return
	}
	total := len(list)
	if list == nil {
		list = []store.Approval{}
	}
	answer(w, http.StatusOK, approvalsAnswer{Approvals: list[:min(total, maxApprovals)], Total: total})
}

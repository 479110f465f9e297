package gateway

import (
	"context"
	"net/http"
	"time"

	"voicegw/store"
)

// Approvals are the approved actions whose outcome is unknown; *store.Approvals implements it.
// Its methods may be used concurrently.
type Approvals interface {
	// Open returns the present ones, the oldest first.
	Open(ctx context.Context, now time.Time) ([]store.Approval, error)
}

// maxApprovals bounds the answer; its field Total is the whole number.
const maxApprovals = 1000

// approvalsAnswer is what GET /v1/approvals answers.
type approvalsAnswer struct {
	Approvals []store.Approval `json:"approvals"`
	Total     int              `json:"total"`
}

// approvals lists the approved actions whose outcome is unknown.
func (s *Server) approvals(w http.ResponseWriter, r *http.Request) {
	list, err := s.opts.Approvals.Open(r.Context(), time.Now())
	if err != nil {
		s.storeFailed(w, "the open approvals cannot be listed", err)
		return
	}
	total := len(list)
	if list == nil {
		list = []store.Approval{}
	}
	answer(w, http.StatusOK, approvalsAnswer{Approvals: list[:min(total, maxApprovals)], Total: total})
}

package wire

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"voicegw/sim/fault"
)

// Connect reports fault.AtConnect and injects the faults that come before the
// answer to the handshake: a delay of the answer, and a cut, for which it returns
// ErrDropped. It returns the other actions, for the owner to Do after Accept.
func Connect(w http.ResponseWriter, r *http.Request, o ConnOptions) (rest []fault.Action, err error) {
	for _, a := range o.Faults.At(fault.Point{At: fault.AtConnect}) {
		switch a.Kind {
		case fault.Delay:
			o.Stats.Committed(a.Kind)
			t := time.NewTimer(a.For)
			select {
			case <-t.C:
			case <-r.Context().Done():
			}
			t.Stop()
		case fault.Drop:
			o.Stats.Committed(a.Kind)
			raw, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return nil, fmt.Errorf("wire: drop: %w", err)
			}
			return nil, errors.Join(ErrDropped, raw.Close())
		case fault.HTTPError:
			o.Stats.Committed(a.Kind)
			RetryAfter(w, a.For)
			http.Error(w, cmp.Or(a.Reason, http.StatusText(a.Code)), a.Code)
			return nil, fmt.Errorf("%w: HTTP %d", ErrDropped, a.Code)
		case fault.Close, fault.GoAway, fault.Expire, fault.DuplicateCall, fault.LateCall, fault.CancelCall, fault.MissingID,
			fault.UnknownEvent, fault.Malformed, fault.Silence, fault.SlowRead, fault.Quota,
			fault.Deaf, fault.RefuseResume, fault.Amnesia, fault.LateHandle, fault.NoHandle, fault.BusyHandle:
			rest = append(rest, a)
		}
	}
	return rest, nil
}

// RetryAfter sets the header that tells the client when to try again, in whole seconds,
// rounded up, and also in ms for OpenAI's clients. Zero sets nothing.
func RetryAfter(w http.ResponseWriter, d time.Duration) {
	if d <= 0 {
		return
	}
	w.Header().Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	w.Header().Set("Retry-After-Ms", strconv.FormatInt(d.Milliseconds(), 10))
}

// StatusName returns Google's word for an HTTP status
// (https://cloud.google.com/apis/design/errors, read 2026-11-20).
func StatusName(code int) string {
	switch code {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	return "INTERNAL"
}

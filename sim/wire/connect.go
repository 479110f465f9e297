package wire

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"voicegw/sim/fault"
)

// Connect reports fault.AtConnect and commits the faults that come before the
// handshake is answered: a delay of the answer, and a cut, for which it returns
// ErrDropped. The other actions are returned, for the owner to Do after Accept.
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
		case fault.Close, fault.GoAway, fault.Expire, fault.DuplicateCall, fault.LateCall, fault.CancelCall, fault.MissingID,
			fault.UnknownEvent, fault.Malformed, fault.Silence, fault.SlowRead, fault.Quota:
			rest = append(rest, a)
		}
	}
	return rest, nil
}

package protocol

import (
	"fmt"
	"strings"
	"time"

	"voicegw/internal/textutil"
)

// DrainProgress is the response of GET and POST /v1/drain.
type DrainProgress struct {
	// Draining means that the drain has begun, Done that nothing is left.
	Draining bool `json:"draining"`
	Done     bool `json:"done"`
	// Until is when the drain ends the rest; zero before the drain.
	Until time.Time `json:"until,omitzero"`
	// Sessions is the number of local voice sessions, and Away those with a disconnected client.
	Sessions int `json:"sessions"`
	Away     int `json:"away"`
	// Moved is the number of sessions released to other gateways since the drain began.
	Moved int `json:"moved"`
	// Carried is the number of clients that this gateway relays to other gateways' sessions.
	Carried int `json:"carried"`
	// Messages is the number of text messages being answered.
	Messages int `json:"messages"`
}

// String formats the progress as one line, without the remaining time.
func (p DrainProgress) String() string {
	if !p.Draining {
		return "not draining"
	}
	left := []string{textutil.Count(p.Sessions, "session")}
	if p.Away > 0 {
		left[0] += fmt.Sprintf(" (%d without a client)", p.Away)
	}
	if p.Carried > 0 {
		left = append(left, textutil.Count(p.Carried, "client")+" of other gateways")
	}
	if p.Messages > 0 {
		left = append(left, textutil.Count(p.Messages, "text message"))
	}
	what := "draining"
	if p.Done {
		what = "drained"
	}
	return fmt.Sprintf("%s: %s moved, %s left", what, textutil.Count(p.Moved, "session"), strings.Join(left, ", "))
}

package report

import "voicegw/internal/textutil"

// Kind is a kind of problem.
type Kind string

// The kinds of problems.
const (
	KindRefused      Kind = "refused"
	KindLost         Kind = "lost"
	KindStuck        Kind = "stuck"
	KindFailed       Kind = "failed"
	KindUnmet        Kind = "unmet"
	KindStale        Kind = "stale"
	KindLostAudio    Kind = "lost audio"
	KindLostMessage  Kind = "lost message"
	KindError        Kind = "error"
	KindProtocol     Kind = "protocol"
	KindTool         Kind = "tool"
	KindDisconnected Kind = "lost connection"
	KindResume       Kind = "resume"
)

// Problem is a problem in one session.
type Problem struct {
	// Session is the caller and Call its call, both from 1.
	Session int `json:"session"`
	Call    int `json:"call"`
	// ID is the session's id at the gateway; empty before it has one.
	ID string `json:"id,omitempty"`
	// Turn is the turn of the call, from 1; 0 if the problem is not about a turn.
	Turn int `json:"turn,omitempty"`
	// AtMS is in ms since the run's start.
	AtMS int64 `json:"at_ms"`
	Kind Kind  `json:"kind"`
	// What describes the problem.
	What string `json:"what"`
}

// maxProblems bounds the problems kept; later ones are only counted.
const maxProblems = 500

// maxWhat bounds a problem's description, in bytes.
const maxWhat = 600

// Problem records a problem.
func (c *Collector) Problem(p Problem) {
	p.What = textutil.Shorten(p.What, maxWhat)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[p.Kind]++
	c.found++
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, p)
	}
}

// ProblemCount returns the number of problems so far, kept or not.
func (c *Collector) ProblemCount() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

package report

import (
	"maps"
	"slices"

	"voicegw/internal/textutil"
)

// Kind is a kind of problem.
type Kind string

// The kinds of problems.
const (
	KindRefused     Kind = "refused"
	KindLost        Kind = "lost"
	KindStuck       Kind = "stuck"
	KindFailed      Kind = "failed"
	KindUnmet       Kind = "unmet"
	KindStale       Kind = "stale"
	KindLostAudio   Kind = "lost audio"
	KindLostMessage Kind = "lost message"
	KindError       Kind = "error"
	KindProtocol    Kind = "protocol"
	KindTool        Kind = "tool"
	KindAway        Kind = "lost connection"
	KindResume      Kind = "resume"
)

// Problem is something that went wrong in one session.
type Problem struct {
	// Session is which caller, from 1, and Call which of that caller's calls, from 1.
	Session int `json:"session"`
	Call    int `json:"call"`
	// ID is the gateway's id of the session; empty before there is one.
	ID string `json:"id,omitempty"`
	// Turn is which turn of the call, from 1; 0 if the problem is not about a turn.
	Turn int `json:"turn,omitempty"`
	// AtMS is when, in ms since the run began.
	AtMS int64 `json:"at_ms"`
	Kind Kind  `json:"kind"`
	// What tells it in words.
	What string `json:"what"`
}

// maxProblems of a run are kept; the rest is counted.
const maxProblems = 500

// maxWhat bounds the words of a problem, in bytes.
const maxWhat = 600

// Problem notes that something went wrong.
func (c *Collector) Problem(p Problem) {
	p.What = textutil.Shorten(p.What, maxWhat)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[p.Kind]++
	if len(c.problems) == maxProblems {
		c.more++
		return
	}
	c.problems = append(c.problems, p)
}

// Problems are what went wrong, in the order it was noted; more counts those that were
// not kept.
func (c *Collector) Problems() (kept []Problem, more int64, byKind map[Kind]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems), c.more, maps.Clone(c.kinds)
}

// ProblemCount is how many problems there are so far, kept or not.
func (c *Collector) ProblemCount() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problemCount()
}

package conversation

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The bounds of a Digest.
const (
	// MaxTitle is the longest title, in characters.
	MaxTitle = 80
	// MaxDigestTools is how many tools are named.
	MaxDigestTools = 12
	// maxPastTools is how many tools a Past counts.
	maxPastTools = 64
)

// Digest is what a list tells of a conversation. It is bounded.
type Digest struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Title is how the user began, on one line; empty if the user has said nothing.
	Title string `json:"title,omitempty"`
	Turns int    `json:"turns"`
	// Modes are the sides on which something was said: text, voice or both, in this order.
	Modes []Side `json:"modes,omitempty"`
	// Calls is how many tool calls there were, and Tools which tools were called: those that were
	// called most come first, and at most MaxDigestTools are named.
	Calls int         `json:"calls,omitempty"`
	Tools []ToolCalls `json:"tools,omitempty"`
	Spent
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ToolCalls is how often a tool was called.
type ToolCalls struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

// Spent is what the models have cost.
type Spent struct {
	// CostUSDMicros is in millionths of a dollar. It lacks what has no price.
	CostUSDMicros int64 `json:"cost_usd_micros,omitempty"`
	// Unpriced counts the usages whose price is not known.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Past is what a Digest still tells of the entries that were removed.
type Past struct {
	Title string         `json:"title,omitempty"`
	Text  bool           `json:"text,omitempty"`
	Voice bool           `json:"voice,omitempty"`
	Calls map[string]int `json:"calls,omitempty"`
	// More counts the calls of the tools that Calls has no room for.
	More int `json:"more,omitempty"`
	Spent
}

// Digest returns what a list tells of c. It shares nothing with c.
func (c *Conversation) Digest() Digest {
	all := c.Past.clone()
	for _, e := range c.Entries {
		all.take(e)
	}
	d := Digest{
		ID: c.ID, User: c.User, Agent: c.Agent, Title: all.Title, Turns: c.Turns, Calls: all.More, Spent: all.Spent,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt,
	}
	if all.Text {
		d.Modes = append(d.Modes, SideText)
	}
	if all.Voice {
		d.Modes = append(d.Modes, SideVoice)
	}
	for tool, calls := range all.Calls {
		d.Calls += calls
		d.Tools = append(d.Tools, ToolCalls{Tool: tool, Calls: calls})
	}
	slices.SortFunc(d.Tools, func(a, b ToolCalls) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	d.Tools = d.Tools[:min(len(d.Tools), MaxDigestTools)]
	return d
}

// clone returns a copy that shares nothing with p, and an empty one for nil.
func (p *Past) clone() *Past {
	if p == nil {
		return &Past{Calls: map[string]int{}}
	}
	own := *p
	if own.Calls = maps.Clone(p.Calls); own.Calls == nil {
		own.Calls = map[string]int{}
	}
	return &own
}

// take counts an entry.
func (p *Past) take(e Entry) {
	if e.Role == RoleUser && p.Title == "" {
		p.Title = shorten(oneLine(e.Text), MaxTitle)
	}
	// A notice is nothing that was said: an approval over HTTP makes no conversation one by voice. Nor does a page.
	said := e.Role != RoleNotice && e.Role != RoleContext
	p.Text = p.Text || said && e.Side == SideText
	p.Voice = p.Voice || said && e.Side == SideVoice
	for _, call := range e.Calls {
		if p.Calls[call.Tool] == 0 && len(p.Calls) >= maxPastTools {
			p.More++
			continue
		}
		p.Calls[call.Tool]++
	}
	p.CostUSDMicros += e.CostUSDMicros
	p.Unpriced += e.Unpriced
}

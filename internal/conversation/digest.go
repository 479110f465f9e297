package conversation

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The limits of a Digest.
const (
	// MaxTitle is the length of the title in characters.
	MaxTitle = 80
	// MaxDigestTools is the number of tools named.
	MaxDigestTools = 12
	// maxPastTools is the number of tools a Past counts.
	maxPastTools = 64
)

// Digest is the bounded description of a conversation in a list.
type Digest struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	// Title is the start of the user's first words, on one line; empty without any.
	Title string `json:"title,omitempty"`
	Turns int    `json:"turns"`
	// Modes are the media used: text, voice or both, in this order.
	Modes []Side `json:"modes,omitempty"`
	// Calls counts tool calls. Tools lists the most called tools first, at most MaxDigestTools.
	Calls int         `json:"calls,omitempty"`
	Tools []ToolCalls `json:"tools,omitempty"`
	Spent
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// ToolCalls counts the calls of one tool.
type ToolCalls struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

// Spent is the cost of the models.
type Spent struct {
	// CostUSDMicros is in millionths of a dollar, without unpriced usage.
	CostUSDMicros int64 `json:"cost_usd_micros,omitempty"`
	// Unpriced counts usage reports without a known price.
	Unpriced int64 `json:"unpriced,omitempty"`
}

// Past is the digest of removed entries.
type Past struct {
	Title string         `json:"title,omitempty"`
	Text  bool           `json:"text,omitempty"`
	Voice bool           `json:"voice,omitempty"`
	Calls map[string]int `json:"calls,omitempty"`
	// More counts calls of tools beyond maxPastTools.
	More int `json:"more,omitempty"`
	Spent
}

// Digest returns a digest that shares no memory with c.
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

// clone returns a deep copy; an empty one for nil.
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

func (p *Past) take(e Entry) {
	if e.Role == RoleUser && p.Title == "" {
		p.Title = shorten(oneLine(e.Text), MaxTitle)
	}
	// Notices and page context are not speech: an approval over HTTP does not make a conversation a voice one.
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

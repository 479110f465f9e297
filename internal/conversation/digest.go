package conversation

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The limits of a Digest.
const (
	MaxTitle       = 80 // the length of the title in characters
	MaxDigestTools = 12 // the number of tools named
	maxPastTools   = 64 // the number of tools a Past counts
)

// Digest is the bounded description of a conversation in a list.
type Digest struct {
	ID    string `json:"id"`
	User  string `json:"user,omitempty"`
	Agent string `json:"agent,omitempty"`
	Title string `json:"title,omitempty"` // the start of the user's first words, on one line; empty without any
	Turns int    `json:"turns"`
	Modes []Side `json:"modes,omitempty"` // the media used: text, voice or both, in this order
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
	CostUSDMicros int64 `json:"cost_usd_micros,omitempty"` // in millionths of a dollar, without unpriced usage
	Unpriced      int64 `json:"unpriced,omitempty"`        // counts usage reports without a known price
}

// Past is the digest of removed entries.
type Past struct {
	Title string         `json:"title,omitempty"`
	Text  bool           `json:"text,omitempty"`
	Voice bool           `json:"voice,omitempty"`
	Calls map[string]int `json:"calls,omitempty"`
	More  int            `json:"more,omitempty"` // counts calls of tools beyond maxPastTools
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

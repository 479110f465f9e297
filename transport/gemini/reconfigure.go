package gemini

import (
	"maps"
	"slices"

	"google.golang.org/genai"

	"voicegw/transport"
)

// contextUpdate is genai.LiveClientContextUpdate with our own type for the tools. The wrapper
// distinguishes tools that are cleared, {}, from tools that stay (genai v1.77.0, types.go).
type contextUpdate struct {
	SystemInstruction *genai.Content `json:"systemInstruction"`
	Tools             updatedTools   `json:"tools"`
}

type updatedTools struct {
	Tools []functionTool `json:"tools,omitempty"`
}

// appendUpdate appends a contextUpdate, which the service handles in order with the other input
// and does not confirm (doc comment of LiveClientContextUpdate; "Update system instructions and
// tools during a session with Gemini 3.8 Live", read 2026-11-24).
func (c *conn) appendUpdate(dst []byte, r transport.Reconfigure) ([]byte, error) {
	tools, err := declareTools(c.row, r.Tools)
	if err != nil {
		return dst, err
	}
	said := &genai.Content{} // no instructions
	if r.Instructions != "" {
		said = genai.NewContentFromText(r.Instructions, genai.RoleUser)
	}
	return appendJSON(dst, "contextUpdate", contextUpdate{SystemInstruction: said, Tools: updatedTools{tools}})
}

// reconfigured makes Recv return a Reconfigured, because later commands follow the update. A call made before it
// keeps the behaviour of its tool.
func (c *conn) reconfigured(r transport.Reconfigure) {
	if c.row.caps.Reconfigure != transport.ReconfigureLive {
		return
	}
	declared := asyncTools(c.row, r.Tools)
	async := maps.Clone(declared)
	for name := range c.declared {
		if !slices.ContainsFunc(r.Tools, func(t transport.Tool) bool { return t.Name == name }) {
			if async == nil {
				async = make(map[string]bool)
			}
			async[name] = true
		}
	}
	c.declared = declared
	c.async.Store(&async)
	c.updates.Add(1)
	c.ws.Nudge()
}

func (c *conn) confirm() {
	for range c.updates.Swap(0) {
		c.dialog.emit(transport.Reconfigured{})
	}
}

func (c *conn) appendItem(dst []byte, item transport.Past) ([]byte, error) {
	var content clientContent
	content.addPast(item)
	for _, turn := range content.Turns {
		if held, err := c.hold(turn, false); held || err != nil {
			return dst, err
		}
	}
	return appendJSON(dst, "clientContent", content)
}

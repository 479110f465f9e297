package gemini

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/coder/websocket"

	"voicegw/transport"
)

// maxPastTool bounds the line about one tool call in a history, in bytes.
const maxPastTool = 2 << 10

// historyFrame encodes the setup's history as one clientContent; nil without a history. A call becomes a line of
// text, because no report says that a history may hold function calls. The caller's instruction comes last, which
// also gives 2.5 the user turn that it needs at the end.
//
// A model with the history in its setup waits for its end: turnComplete does not ask it to answer (doc comment of
// HistoryConfig in genai v1.77.0). For any other model turnComplete would be a question.
func historyFrame(r *row, setup transport.Setup) ([]byte, error) {
	past := pastOf(r, setup)
	if len(past) == 0 {
		return nil, nil
	}
	content := clientContent{TurnComplete: r.historyInSetup}
	for _, p := range past {
		content.addPast(p)
	}
	return appendJSON(nil, "clientContent", content)
}

// pastOf returns the history for the model; nil if it resumes a conversation.
func pastOf(r *row, setup transport.Setup) []transport.Past {
	switch past := setup.History; {
	case setup.ResumeHandle != "" && r.caps.Resume:
		return nil
	case setup.Reanchor != "":
		return append(past[:len(past):len(past)], transport.PastNote{Text: setup.Reanchor})
	default:
		return past
	}
}

func (c *clientContent) addPast(p transport.Past) {
	switch p := p.(type) {
	case transport.PastUser:
		c.add("user", p.Text)
	case transport.PastNote:
		c.add("user", p.Text)
	case transport.PastAssistant:
		c.add("model", p.Text)
	case transport.PastTool:
		c.add("user", pastTool(p))
	}
}

func (c *clientContent) add(role, text string) {
	if n := len(c.Turns); n > 0 && c.Turns[n-1].Role == role {
		c.Turns[n-1].Parts = append(c.Turns[n-1].Parts, textPart{text})
		return
	}
	c.Turns = append(c.Turns, textTurn{Role: role, Parts: []textPart{{text}}})
}

func pastTool(p transport.PastTool) string {
	outcome := ""
	if !p.OK {
		outcome = " failed"
	}
	line := "[tool " + p.Name + " " + string(p.Args) + outcome + " -> " + string(p.Output)
	if len(line) >= maxPastTool {
		cut := maxPastTool - len("…]")
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "…"
	}
	return strings.ToValidUTF8(line, "") + "]"
}

// remember sends the history. The provider does not confirm it, but it reads in order.
func (c *conn) remember(ctx context.Context, history []byte) error {
	if history == nil {
		return nil
	}
	defer c.closeWith(ctx)()
	if err := c.ws.Write(websocket.MessageText, history); err != nil {
		return c.readError(ctx, transport.OpHistory, err)
	}
	return nil
}

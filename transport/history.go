package transport

import "encoding/json"

// Past is one entry of Setup.History. The set is closed: PastUser, PastAssistant, PastTool and PastNote.
type Past interface{ past() }

// PastUser is the user's text, spoken or typed.
type PastUser struct{ Text string }

// PastAssistant is the heard part of an answer. Interrupted means that the user cut it off there.
type PastAssistant struct {
	Text        string
	Interrupted bool
}

// PastTool is an answered tool call. OK means that the tool succeeded.
type PastTool struct {
	Name string
	// Args is a JSON object, Output any JSON.
	Args, Output json.RawMessage
	OK           bool
}

// PastNote is the caller's own text for the model, such as a summary.
type PastNote struct{ Text string }

func (PastUser) past()      {}
func (PastAssistant) past() {}
func (PastTool) past()      {}
func (PastNote) past()      {}

// HistoryForm is how a model takes Setup.History.
type HistoryForm string

// The forms of a history.
const (
	// HistoryNone: Setup.History and Setup.Reanchor are ignored.
	HistoryNone HistoryForm = ""
	// HistoryItems: entries become items of the conversation, and so does a tool call.
	HistoryItems HistoryForm = "items"
	// HistoryContent: entries become turns of text, and a tool call a line of text.
	HistoryContent HistoryForm = "content"
)

// OpHistory is the Op of an Error when the provider has accepted the setup but not the history.
const OpHistory = "history"

package transport

import "encoding/json"

// Past is one entry of Setup.History: something that was said or done before the connection was
// opened. The set is closed: PastUser, PastAssistant, PastTool and PastNote.
type Past interface{ past() }

// PastUser is what the user said or typed.
type PastUser struct{ Text string }

// PastAssistant is what the user heard of an answer. Interrupted means that the user cut it off
// there.
type PastAssistant struct {
	Text        string
	Interrupted bool
}

// PastTool is a tool call that has its answer. OK means that the tool succeeded.
type PastTool struct {
	Name string
	// Args is a JSON object, Output any JSON.
	Args, Output json.RawMessage
	OK           bool
}

// PastNote is the caller's own words to the model, such as a summary of what came before.
type PastNote struct{ Text string }

func (PastUser) past()      {}
func (PastAssistant) past() {}
func (PastTool) past()      {}
func (PastNote) past()      {}

// HistoryForm is how a model takes Setup.History.
type HistoryForm string

// The forms of a history.
const (
	// HistoryNone: the model takes none. Setup.History and Setup.Reanchor are ignored.
	HistoryNone HistoryForm = ""
	// HistoryItems: the entries become items of the conversation, and a tool call is one.
	HistoryItems HistoryForm = "items"
	// HistoryContent: the entries become turns of text, and a tool call is a line of text.
	HistoryContent HistoryForm = "content"
)

// OpHistory is the Op of an Error when the provider has accepted the setup but not the history.
const OpHistory = "history"

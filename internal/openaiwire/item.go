package openaiwire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"voicegw/audio"
)

// Types of items.
const (
	Message        = "message"
	FunctionCall   = "function_call"
	FunctionOutput = "function_call_output"
	ItemReference  = "item_reference"
	MCPListTools   = "mcp_list_tools"
	MCPCall        = "mcp_call"
	MCPRequest     = "mcp_approval_request"
	MCPResponse    = "mcp_approval_response"
)

// Item is an item of a conversation.
type Item struct {
	ID, Type, Status string
	Role, Phase      string // of a Message
	Content          []Content
	Name, CallID     string // of a FunctionCall; CallID of a FunctionOutput too
	Arguments        string
	Output           string
	// Raw is an item of another type, as it was received.
	Raw json.RawMessage
	// Size is the approximate size of the item in bytes without its audio, as its client sent it.
	Size int
}

// Content is a part of a Message.
type Content struct {
	Type       string // input_text, input_audio, input_image, output_text, output_audio
	Text       string
	Transcript *string
	Raw        json.RawMessage // input_image as received
	ImageURL   string
	// Audio is the input_audio of a client in the session's input format. It is not sent.
	Audio []byte
}

// MarshalJSON writes the keys of the type, in the order of the recordings.
func (c Content) MarshalJSON() ([]byte, error) {
	switch c.Type {
	case "input_image":
		return c.Raw, nil
	case "input_audio", "output_audio":
		return Object{"type", c.Type, "transcript", c.Transcript}.MarshalJSON()
	}
	return Object{"type", c.Type, "text", c.Text}.MarshalJSON()
}

// MarshalJSON writes the keys of the type, in the order of the recordings.
func (it *Item) MarshalJSON() ([]byte, error) {
	switch it.Type {
	case Message:
		return it.Message(append([]Content{}, it.Content...)).MarshalJSON()
	case FunctionCall:
		return Object{
			"id", it.ID, "type", it.Type, "status", it.Status, "name", it.Name, "call_id", it.CallID, "arguments", it.Arguments,
		}.MarshalJSON()
	case FunctionOutput:
		return Object{"id", it.ID, "type", it.Type, "call_id", it.CallID, "output", it.Output}.MarshalJSON()
	}
	return it.Raw, nil
}

// Message is a Message with the given content instead of its own.
func (it *Item) Message(parts any) Object {
	o := Object{"id", it.ID, "type", it.Type, "status", it.Status, "role", it.Role, "content", parts}
	if it.Phase != "" {
		o = append(o, "phase", it.Phase)
	}
	return o
}

// Words returns the texts and transcripts of a Message.
func (it *Item) Words() string {
	var parts []string
	for _, c := range it.Content {
		if c.Type == "input_image" {
			parts = append(parts, "[image]")
		}
		if c.Text != "" {
			parts = append(parts, c.Text)
		}
		if c.Transcript != nil && *c.Transcript != "" {
			parts = append(parts, *c.Transcript)
		}
	}
	return strings.Join(parts, " ")
}

// IsAudio reports whether the item is speech of the user.
func (it *Item) IsAudio() bool {
	return slices.ContainsFunc(it.Content, func(c Content) bool { return c.Type == "input_audio" })
}

// Speech returns an item with speech of the user, without its words.
func Speech(id string) *Item {
	return &Item{ID: id, Type: Message, Status: Completed, Role: "user", Content: []Content{{Type: "input_audio"}}}
}

// Key returns the item's id, for List.
func (it *Item) Key() string { return it.ID }

// List are items in the order of their conversation.
type List[T interface{ Key() string }] []T

// Find returns the item with an id, the newest first, and its index; -1 without one.
func (l List[T]) Find(id string) (it T, index int) {
	for i, it := range slices.Backward(l) {
		if it.Key() == id {
			return it, i
		}
	}
	return it, -1
}

// Before returns the id of the item before one; nil if that is the first or unknown.
func (l List[T]) Before(id string) *string {
	_, i := l.Find(id)
	return l[:max(i, 0)].Last()
}

// Last returns the id of the last item; nil without one.
func (l List[T]) Last() *string {
	if len(l) == 0 {
		return nil
	}
	id := l[len(l)-1].Key()
	return &id
}

// After returns the index after the item with the id previous: 0 for "root", the end for nil. ok is false, with the end,
// for an unknown id.
func (l List[T]) After(previous *string) (index int, ok bool) {
	switch {
	case previous == nil:
		return len(l), true
	case *previous == "root":
		return 0, true
	}
	if _, i := l.Find(*previous); i >= 0 {
		return i + 1, true
	}
	return len(l), false
}

// Approval reads an MCPResponse: the id of its request, and the answer.
func (it *Item) Approval() (requestID string, approve bool, err *Error) {
	var answer *bool
	err = Fields{
		"type": Ignored, "id": Ignored, "object": Ignored, "status": Ignored, "reason": Ignored,
		"approval_request_id": Text(&requestID), "approve": present(&answer, Bool),
	}.Read(it.Raw, "item")
	switch {
	case err != nil:
		return "", false, err
	case requestID == "":
		return "", false, Missing("item.approval_request_id")
	case answer == nil:
		return "", false, Missing("item.approve")
	}
	return requestID, *answer, nil
}

func readItem(raw json.RawMessage, path string) (*Item, *Error) {
	if len(raw) == 0 {
		return nil, Missing(path)
	}
	it := &Item{Status: Completed, Size: len(raw)}
	if err := readType(&it.Type, raw, path, Message, FunctionCall, FunctionOutput, ItemReference,
		MCPResponse, MCPRequest, MCPListTools, MCPCall); err != nil {
		return nil, err
	}
	common := Fields{
		"type": Ignored, "id": Text(&it.ID), "object": Ignored,
		"status": Word(&it.Status, Completed, Incomplete, InProgress),
	}
	switch it.Type {
	case Message:
		return it, it.readMessage(raw, path, common)
	case FunctionCall:
		common["name"], common["call_id"], common["arguments"] = Text(&it.Name), Text(&it.CallID), Text(&it.Arguments)
		return it, cmp.Or(common.Read(raw, path), need(it.Name, path+".name"), need(it.Arguments, path+".arguments"))
	case FunctionOutput:
		common["call_id"], common["output"] = Text(&it.CallID), Text(&it.Output)
		return it, cmp.Or(common.Read(raw, path), need(it.CallID, path+".call_id"))
	}
	it.Raw = raw
	var ref struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &ref) == nil {
		it.ID = ref.ID
	}
	return it, nil
}

// contentKinds are the kinds of content that each role may have in an item of the client. The
// assistant's speech is not among them: "current limitation that it cannot populate assistant
// audio messages" (conversation.item.create in the API reference, read 2026-11-20).
var contentKinds = map[string][]string{
	"user":      {"input_text", "input_audio", "input_image"},
	"assistant": {"output_text"},
	"system":    {"input_text"},
}

func (it *Item) readMessage(raw json.RawMessage, path string, f Fields) *Error {
	var list json.RawMessage
	f["role"] = Word(&it.Role, "user", "assistant", "system")
	f["phase"] = Text(&it.Phase)
	f["content"] = Raw(&list)
	if err := cmp.Or(f.Read(raw, path), need(it.Role, path+".role"), need(string(list), path+".content")); err != nil {
		return err
	}
	return each(it.readContent, func() {})(list, path+".content")
}

func (it *Item) readContent(raw json.RawMessage, path string) *Error {
	c := Content{Raw: raw}
	var transcript, encoded string
	if err := (Fields{
		"type": Word(&c.Type, contentKinds[it.Role]...), "text": Text(&c.Text),
		"transcript": OrNull(func() {}, Text(&transcript)), "audio": OrNull(func() {}, Text(&encoded)),
		"image_url": OrNull(func() {}, Text(&c.ImageURL)), "detail": Ignored,
	}).Read(raw, path); err != nil {
		return err
	}
	switch c.Type {
	case "":
		return Missing(path + ".type")
	case "input_audio":
		data, err := audio.AppendFromBase64(nil, []byte(encoded))
		if err != nil {
			return InvalidAudio(path + ".audio")
		}
		c.Audio = data
		it.Size = max(it.Size-len(encoded), 0)
		if transcript != "" {
			c.Transcript = &transcript
		}
	}
	if c.Type != "input_image" {
		c.Raw = nil
	}
	it.Content = append(it.Content, c)
	return nil
}

package openai

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/sim/rest"
	"voicegw/sim/scenario"
)

const (
	kindMessage = "message"
	kindCall    = "function_call"
	kindOutput  = "function_call_output"

	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	cancelled  = "cancelled"
	failed     = "failed"
)

type item struct {
	id, kind, status string
	role, phase      string // message
	content          []content
	name, callID     string // function_call; callID of function_call_output too
	arguments        string
	output           string
	raw              json.RawMessage // an item of a kind that is only stored

	// size is the approximate size of the item in bytes without its audio, as its client sent it.
	size     int
	answered bool
	// audio is the item's encoded audio in the given format; it is cut or dropped if too much is
	// held. length is its original length.
	audio  []byte
	cut    bool
	format format
	length time.Duration
	// spoken is the length of the speech in a user's audio; told means that the client also sent its words.
	spoken time.Duration
	told   bool
	heard  string
	// cutWords are about the words that are left of the assistant's truncated speech.
	cutWords string
}

type content struct {
	kind       string // input_text, input_audio, input_image, output_text, output_audio
	text       string
	transcript *string
	raw        json.RawMessage // input_image as received
}

// MarshalJSON writes the keys of the kind, in the order of the recordings.
func (c content) MarshalJSON() ([]byte, error) {
	switch c.kind {
	case "input_image":
		return c.raw, nil
	case "input_audio", "output_audio":
		return object{"type", c.kind, "transcript", c.transcript}.MarshalJSON()
	}
	return object{"type", c.kind, "text", c.text}.MarshalJSON()
}

func (it *item) MarshalJSON() ([]byte, error) {
	switch it.kind {
	case kindMessage:
		return it.message(append([]content{}, it.content...)).MarshalJSON()
	case kindCall:
		return object{
			"id", it.id, "type", it.kind, "status", it.status, "name", it.name, "call_id", it.callID, "arguments", it.arguments,
		}.MarshalJSON()
	case kindOutput:
		return object{"id", it.id, "type", it.kind, "call_id", it.callID, "output", it.output}.MarshalJSON()
	}
	return it.raw, nil
}

func (it *item) message(parts any) object {
	o := object{"id", it.id, "type", it.kind, "status", it.status, "role", it.role, "content", parts}
	if it.phase != "" {
		o = append(o, "phase", it.phase)
	}
	return o
}

func (it *item) words() string {
	var parts []string
	for _, c := range it.content {
		if c.kind == "input_image" {
			parts = append(parts, "[image]")
		}
		if c.text != "" {
			parts = append(parts, c.text)
		}
		if c.transcript != nil && *c.transcript != "" {
			parts = append(parts, *c.transcript)
		}
	}
	return strings.Join(parts, " ")
}

// memory is the item as the model remembers it; call is the name of the tool that a result is
// of. It returns false for items that say nothing.
func (it *item) memory(call string) (scenario.Memory, bool) {
	m := scenario.Memory{Who: it.role}
	switch it.kind {
	case kindMessage:
		m.Text = cmp.Or(it.words(), it.heard, it.cutWords)
		if it.role == "assistant" {
			m.Who = "model"
		}
	case kindCall:
		m.Who, m.Text = "call", it.name+" "+it.arguments
	case kindOutput:
		m.Who, m.Text = "result", call+" "+it.output
	}
	return m, m.Who != "" && m.Text != ""
}

// truncated estimates the words in the first part of a speech from its length: the model itself hears only the
// remaining sound.
func truncated(words string, part, whole time.Duration) string {
	all := strings.Fields(words)
	if whole <= 0 || part >= whole {
		return words
	}
	return strings.Join(all[:int(int64(len(all))*int64(part)/int64(whole))], " ")
}

func (it *item) isAudio() bool {
	return slices.ContainsFunc(it.content, func(c content) bool { return c.kind == "input_audio" })
}

func readItem(raw json.RawMessage, path string, in format) (*item, *rest.Error) {
	if len(raw) == 0 {
		return nil, rest.Missing(path)
	}
	it := &item{status: completed, format: in}
	defer func() { it.size = max(len(raw)-len(it.audio)*4/3, 0) }()
	if err := readType(&it.kind, raw, path, kindMessage, kindCall, kindOutput, "item_reference",
		"mcp_approval_response", "mcp_approval_request", "mcp_list_tools", "mcp_call"); err != nil {
		return nil, err
	}
	common := fields{
		"type": ignored, "id": text(&it.id), "object": ignored,
		"status": word(&it.status, completed, incomplete, inProgress),
	}
	switch it.kind {
	case kindMessage:
		return it, it.readMessage(raw, path, common)
	case kindCall:
		common["name"], common["call_id"], common["arguments"] = text(&it.name), text(&it.callID), text(&it.arguments)
		return it, cmp.Or(common.apply(raw, path), need(it.name, path+".name"), need(it.arguments, path+".arguments"))
	case kindOutput:
		common["call_id"], common["output"] = text(&it.callID), text(&it.output)
		return it, cmp.Or(common.apply(raw, path), need(it.callID, path+".call_id"))
	}
	it.raw = raw
	var ref struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &ref) == nil {
		it.id = ref.ID
	}
	return it, nil
}

func need(value, path string) *rest.Error {
	if value == "" {
		return rest.Missing(path)
	}
	return nil
}

// contentKinds are the kinds of content that each role may have in an item of the client. The
// assistant's speech is not among them: "current limitation that it cannot populate assistant
// audio messages" (conversation.item.create in the API reference, read 2026-11-20).
var contentKinds = map[string][]string{
	"user":      {"input_text", "input_audio", "input_image"},
	"assistant": {"output_text"},
	"system":    {"input_text"},
}

func (it *item) readMessage(raw json.RawMessage, path string, f fields) *rest.Error {
	var list json.RawMessage
	f["role"] = word(&it.role, "user", "assistant", "system")
	f["phase"] = text(&it.phase)
	f["content"] = asIs(&list)
	if err := cmp.Or(f.apply(raw, path), need(it.role, path+".role"), need(string(list), path+".content")); err != nil {
		return err
	}
	parts, err := array(list, path+".content")
	if err != nil {
		return err
	}
	for i, p := range parts {
		if err := it.readContent(p, index(path+".content", i)); err != nil {
			return err
		}
	}
	return nil
}

func (it *item) readContent(raw json.RawMessage, path string) *rest.Error {
	c := content{raw: raw}
	var transcript, encoded string
	if err := (fields{
		"type": word(&c.kind, contentKinds[it.role]...), "text": text(&c.text),
		"transcript": orNull(func() {}, text(&transcript)), "audio": orNull(func() {}, text(&encoded)),
		"image_url": ignored, "detail": ignored,
	}).apply(raw, path); err != nil {
		return err
	}
	switch c.kind {
	case "":
		return rest.Missing(path + ".type")
	case "input_audio":
		data, err := audio.AppendFromBase64(nil, []byte(encoded))
		if err != nil {
			return invalidAudio(path + ".audio")
		}
		it.audio, it.length = data, time.Duration(len(data)/it.format.bytesPerMS())*time.Millisecond
		it.spoken = it.length
		if transcript != "" {
			c.transcript, it.told = &transcript, true
		}
	}
	if c.kind != "input_image" {
		c.raw = nil
	}
	it.content = append(it.content, c)
	return nil
}

// invalidAudio is (own).
func invalidAudio(path string) *rest.Error {
	return rest.Invalid("invalid_value", path, "Invalid '%s'. Expected base64-encoded audio bytes in the session's input format.", path)
}

package gateway

import (
	"crypto/rand"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"voicegw/chat"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

const uiProtocol = "ui-message-stream"

func wantsUI(r *http.Request) bool {
	if r.URL.Query().Get("protocol") == uiProtocol {
		return true
	}
	for _, line := range r.Header.Values("Accept") {
		for kind := range strings.SplitSeq(line, ",") {
			if _, params, err := mime.ParseMediaType(kind); err == nil && params["protocol"] == uiProtocol {
				return true
			}
		}
	}
	return false
}

// uiBody is the request of useChat's default transport (ai-sdk.dev/docs/ai-sdk-ui/transport and stream-protocol, npm ai
// 6.0.322, read 2026-11-23).
type uiBody struct {
	ID        string      `json:"id"`
	Messages  []uiMessage `json:"messages"`
	Trigger   string      `json:"trigger"`
	MessageID string      `json:"messageId"`
	User      string      `json:"user"`
	Scopes    []string    `json:"scopes"`
}

type uiMessage struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"`
	Metadata json.RawMessage `json:"metadata"`
	Parts    []uiPart        `json:"parts"`
}

type uiPart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	MediaType string `json:"mediaType"`
	URL       string `json:"url"`
}

// UnmarshalJSON implements json.Unmarshaler. Parts have many fields; few are used.
func (p *uiPart) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Type      string          `json:"type"`
		Text      json.RawMessage `json:"text"`
		MediaType json.RawMessage `json:"mediaType"`
		URL       json.RawMessage `json:"url"`
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err //nolint:wrapcheck // readBody writes the error
	}
	p.Type = fields.Type
	// A missing field, or one of another type, stays empty and is checked later.
	_ = json.Unmarshal(fields.MediaType, &p.MediaType)
	_ = json.Unmarshal(fields.URL, &p.URL)
	if p.Type != "text" {
		return nil
	}
	return json.Unmarshal(fields.Text, &p.Text) //nolint:wrapcheck // readBody writes the error
}

func (b uiBody) asChat(seen *pictures) (chatBody, string) {
	out := chatBody{User: b.User, Scopes: b.Scopes}
	if b.Trigger == "regenerate-message" {
		out.MessageID = "regenerate-" + rand.Text() // the user wants a new answer
	}
	if b.Trigger != "" && b.Trigger != "submit-message" && b.Trigger != "regenerate-message" {
		return out, "trigger must be submit-message or regenerate-message."
	}
	if len(b.Messages) == 0 {
		return out, "messages is missing or empty."
	}
	for i, m := range b.Messages {
		var texts []string
		var parts []textmodel.Part
		images := false
		for j, p := range m.Parts {
			at := "messages[" + strconv.Itoa(i) + "].parts[" + strconv.Itoa(j) + "]"
			switch {
			case p.Type == "text":
				texts = append(texts, p.Text)
				parts = append(parts, textmodel.Part{Text: p.Text})
			case p.Type == "file" && m.Role == "user":
				part, no := seen.file(at, p)
				if no != nil {
					return out, no.message
				}
				parts, images = append(parts, part), true
			case m.Role != "assistant":
				return out, at + " is of the type " + strconv.Quote(clip(p.Type)) +
					", which is not supported in a message of the role " + clip(m.Role) +
					"; the types are text and, of the user's, file with an image."
			}
		}
		if !images {
			parts = nil
		}
		out.Messages = append(out.Messages, chatMessage{Role: m.Role, text: strings.Join(texts, "\n"), parts: parts})
	}
	return out, ""
}

type uiStream struct {
	out       *eventWriter
	absolute  func(string) string
	mediaType func(address string) string

	begun  bool
	seq    int64
	text   string // the open text part
	cut    bool
	refuse bool
	failed bool
	usage  protocol.Usage
}

// part writes a part, and the start before the first one.
func (u *uiStream) part(kind string, fields map[string]any) {
	if !u.begun {
		u.begun = true
		u.out.w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
		if kind != "start" {
			u.out.data(map[string]any{"type": "start", "messageId": "msg_" + rand.Text()})
		}
	}
	fields["type"] = kind
	u.out.data(fields)
}

func (u *uiStream) endText() {
	if u.text != "" {
		u.part("text-end", map[string]any{"id": u.text})
		u.text = ""
	}
}

func (u *uiStream) take(m protocol.ServerMessage) {
	u.seq++
	switch m := m.(type) {
	case *protocol.TurnStarted:
		u.part("start", map[string]any{"messageId": "msg_" + rand.Text(),
			"messageMetadata": map[string]any{"conversation_id": m.ConversationID}})
	case *protocol.TextDelta:
		if u.text != m.ItemID {
			u.endText()
			u.text = m.ItemID
			u.part("text-start", map[string]any{"id": u.text})
		}
		u.part("text-delta", map[string]any{"id": u.text, "delta": m.Text})
	case *protocol.TextDone:
		u.cut, u.refuse = m.Cut, m.Refused
		u.endText()
	case *protocol.ToolStarted:
		// As at /v1/chat, users don't get arguments and answers.
		u.part("tool-input-available", map[string]any{"toolCallId": m.CallID, "toolName": m.Tool, "input": map[string]any{},
			"dynamic": true, "providerExecuted": true})
	case *protocol.ToolEnded:
		u.toolEnded(m)
	case *protocol.UIImage:
		shown := *m
		shown.URL = u.absolute(m.URL)
		u.part("file", map[string]any{"url": shown.URL, "mediaType": u.mediaType(m.URL)})
		u.data(&shown)
	case *protocol.ConfirmationRequest, *protocol.ConfirmationEnded, *protocol.VoiceSessionStart, *protocol.Timeout:
		u.data(m)
	case *protocol.TurnUsage:
		u.usage = m.Usage
	case *protocol.Error:
		u.endText()
		u.failed = true
		u.part("error", map[string]any{"errorText": m.Message})
	case *protocol.Done:
		u.done()
	}
}

func (u *uiStream) data(m protocol.ServerMessage) {
	sent := protocol.Clone(m)
	text, err := protocol.EncodeServer(u.seq, sent)
	if err != nil {
		return // every message encodes: tested in package protocol
	}
	name := strings.ReplaceAll(protocol.HeaderOf(sent).Type, ".", "_")
	u.part("data-"+name, map[string]any{"id": name + "_" + strconv.FormatInt(u.seq, 10), "data": json.RawMessage(text)})
}

func (u *uiStream) toolEnded(m *protocol.ToolEnded) {
	fields := map[string]any{"toolCallId": m.CallID, "dynamic": true, "providerExecuted": true}
	var e struct{ Type, Message string }
	_ = json.Unmarshal(m.Error, &e) // missing, or the gateway's own
	switch {
	case m.OK:
		fields["output"] = map[string]any{"ok": true, "duration_ms": m.DurationMS}
	case e.Type == "CONFIRMATION_REQUIRED":
		fields["output"] = map[string]any{"ok": false, "error": e.Type}
	default:
		fields["errorText"] = e.Message
		u.part("tool-output-error", fields)
		return
	}
	u.part("tool-output-available", fields)
}

func (u *uiStream) done() {
	u.endText()
	reason := "stop"
	switch {
	case u.failed:
		reason = "error"
	case u.refuse:
		reason = "content-filter"
	case u.cut:
		reason = "length"
	}
	u.part("finish", map[string]any{"finishReason": reason, "messageMetadata": map[string]any{
		"usage": map[string]any{"inputTokens": u.usage.InputTokens, "outputTokens": u.usage.OutputTokens},
	}})
	u.out.write("data: [DONE]\n\n")
}

func (s chatAPI) imageType(address string) string {
	if s.opts.Images != nil {
		if img, err := s.opts.Images.Open(path.Base(address)); err == nil {
			defer func() { _ = img.Close() }() // only read
			return img.Type
		}
	}
	return "image/png"
}

func (s chatAPI) readChat(w http.ResponseWriter, r *http.Request) (body chatBody, done func(), no *problem) {
	if !wantsUI(r) {
		done, no = s.readTurn(w, r, &body, true)
		return body, done, no
	}
	var ui uiBody
	if done, no = s.readTurn(w, r, &ui, true); no != nil {
		return body, done, no
	}
	body, wrong := ui.asChat(&pictures{sees: s.opts.Chat.Sees()})
	if wrong != "" {
		no = invalid(wrong)
	}
	return body, done, no
}

func (s chatAPI) taker(r *http.Request, out *eventWriter) chat.Emit {
	if !wantsUI(r) {
		return (&eventStream{out: out}).send
	}
	u := &uiStream{out: out, absolute: func(address string) string { return s.absolute(r, address) }, mediaType: s.imageType}
	return u.take
}

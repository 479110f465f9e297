package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

// RealtimeOptions describe a connection of the OpenAI Realtime protocol.
type RealtimeOptions struct {
	// APIKey is sent as OpenAI's clients send theirs; may be empty.
	APIKey string
	// Model is the query parameter model; empty leaves it to the gateway.
	Model string
	// Client dials; nil means http.DefaultClient.
	Client *http.Client
	// User is the user's stable id; may be empty.
	User string
	// Tools asks to see the gateway's own tools and to answer their questions.
	Tools bool
}

// Realtime is a connection of the OpenAI Realtime protocol that translates for the engine (GA, developers.openai.com,
// "Realtime API", read 2026-11-20). One goroutine may read and one may write; Abort is safe for concurrent use.
type Realtime struct {
	// Fixed after DialRealtime.
	conn    *ws.Conn
	tools   bool
	inbox   inbox
	helpers sync.WaitGroup

	ulaw []byte // of the writer, reused

	mu    sync.Mutex // guards the following field
	state realtimeState
}

// maxEvent bounds a server's event: 15 MiB of audio in base64 is the most that a client may send.
const maxEvent = 20 << 20

// DialRealtime connects to a server of the protocol at address (ws, wss, http or https). ctx applies only to the dial.
func DialRealtime(ctx context.Context, address string, o RealtimeOptions) (*Realtime, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", address, err)
	}
	if o.Model != "" {
		q := u.Query()
		q.Set("model", o.Model)
		u.RawQuery = q.Encode()
	}
	h := protocol.Bearer(o.APIKey)
	if o.User != "" {
		h.Set("OpenAI-Safety-Identifier", o.User)
	}
	conn, err := dial(ctx, u.String(), h, o.Client, maxEvent)
	if err != nil {
		return nil, err
	}
	return &Realtime{conn: conn, tools: o.Tools, state: realtimeState{items: map[string]*realtimeItem{}}}, nil
}

func dial(ctx context.Context, address string, h http.Header, client *http.Client, limit int64) (*ws.Conn, error) {
	conn, resp, err := ws.Dial(ctx, address, &websocket.DialOptions{
		HTTPHeader: h, HTTPClient: client, CompressionMode: websocket.CompressionDisabled,
	}, ws.Options{Limit: limit})
	if err == nil {
		return conn, nil
	}
	if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("connect: %w", err)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // the status says enough without it
	return nil, fmt.Errorf("connect: the server answered %s: %s", resp.Status, body)
}

// Read returns the next frame of voicegw.v1.
func (c *Realtime) Read() (protocol.Frame, error) {
	for {
		f, ok, err := c.inbox.next()
		if ok || err != nil {
			return f, err
		}
		_, data, err := c.conn.Read()
		if err != nil {
			if c.locked(func() { c.state.closed(err, &c.inbox) }); !c.inbox.empty() {
				continue
			}
			return f, fmt.Errorf("read event: %w", err)
		}
		var problem error
		var events []any
		c.locked(func() {
			problem = c.state.hear(data, &c.inbox)
			events, c.state.owed = c.state.owed, nil
		})
		if err := errors.Join(problem, c.write(events)); err != nil {
			return f, err
		}
	}
}

func (c *Realtime) locked(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// WriteAudio sends the user's speech, PCM16 at the rate of session.start.
func (c *Realtime) WriteAudio(pcm []byte) error {
	m := ws.NewMessage()
	m.B = append(m.B, appendHead...)
	var rate int
	if c.locked(func() { rate = c.state.start.InputRate }); rate == audio8k {
		c.ulaw = audio.AppendULaw(c.ulaw[:0], pcm)
		pcm = c.ulaw
	}
	m.B = append(audio.AppendBase64(m.B, pcm), `"}`...)
	return c.conn.Send(websocket.MessageText, m)
}

// WriteText translates a message of voicegw.v1. Messages that the protocol does not have are errors.
func (c *Realtime) WriteText(message []byte) error {
	m, err := protocol.ParseClient(message)
	if err != nil {
		return err
	}
	if _, end := m.(*protocol.End); end {
		c.locked(func() { c.state.leaving = true })
		c.helpers.Go(func() { _ = c.conn.Close(websocket.StatusNormalClosure, "") }) // the reader gets the peer's answer
		return nil
	}
	var events []any
	c.locked(func() { events, err = c.state.said(m, c.tools, &c.inbox) })
	return errors.Join(err, c.write(events))
}

func (c *Realtime) write(events []any) error {
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if err := c.conn.Write(websocket.MessageText, data); err != nil {
			return err
		}
	}
	return nil
}

// Abort drops the connection without a close frame and waits for the goroutines.
func (c *Realtime) Abort() {
	_ = c.conn.CloseNow() // it may be closed
	c.helpers.Wait()
}

// audio8k is the rate of G.711, in Hz.
const audio8k = 8000

// realtimeState translates both ways. It is pure, and not safe for concurrent use.
type realtimeState struct {
	start     protocol.Start
	sessionID string
	began     bool // session.started was said
	leaving   bool // session.end was said
	over      bool // session.ended was said

	turn   int  // the newest response, from 1
	active bool // it is not over
	// after are events to send when the response is over, owed those to send now.
	after, owed []any
	items       map[string]*realtimeItem // spoken items that the user is not done with
	user        struct{ id, text string }
	// stopping: the stop button was pressed, and the response is not over yet.
	stopping bool
}

// realtimeItem is a spoken answer.
type realtimeItem struct {
	turn    int
	bytes   int // received
	text    string
	begun   bool // audio.start was said
	ended   bool // audio.end was said
	flushed bool
}

// maxRealtimeItems bounds the open items; a server has few.
const maxRealtimeItems = 64

type object map[string]any

func audioFormat(rate int) openaiwire.Format {
	if rate == audio8k {
		return openaiwire.Format{Type: "audio/pcmu"}
	}
	return openaiwire.Format{Type: "audio/pcm", Rate: rate}
}

// appendHead begins the event with the user's audio.
const appendHead = `{"type":"` + openaiwire.AudioAppend + `","audio":"`

// said returns the events for a message of the engine.
func (s *realtimeState) said(m protocol.ClientMessage, tools bool, to *inbox) ([]any, error) {
	switch m := m.(type) {
	case *protocol.Start:
		s.start = *m
		return []any{object{"type": openaiwire.SessionUpdate, "session": s.session(tools)}}, nil
	case *protocol.InputText:
		item := object{"type": openaiwire.ItemCreate, "item": object{"type": openaiwire.Message, "role": "user",
			"content": []object{{"type": "input_text", "text": m.Text}}}}
		respond := object{"type": openaiwire.ResponseCreate}
		if s.active { // the text interrupts it
			s.stopping, s.after = true, []any{respond}
			return []any{item, object{"type": openaiwire.ResponseCancel}}, nil
		}
		s.flush("user_text", to)
		return []any{item, respond}, nil
	case *protocol.InputActivity:
		if m.Active {
			return []any{object{"type": openaiwire.AudioClear}}, nil
		}
		return []any{object{"type": openaiwire.AudioCommit}, object{"type": openaiwire.ResponseCreate}}, nil
	case *protocol.Interrupt:
		s.stopping = true
		return []any{object{"type": "response.cancel"}}, nil
	case *protocol.Playback:
		return s.played(m), nil
	case *protocol.ConfirmationResolve:
		return []any{object{"type": openaiwire.ItemCreate, "item": object{"type": openaiwire.MCPResponse,
			"approval_request_id": m.Token, "approve": m.Approved}}, object{"type": openaiwire.ResponseCreate}}, nil
	default:
		return nil, fmt.Errorf("the OpenAI Realtime protocol has no message like %T", m)
	}
}

func (s *realtimeState) session(tools bool) object {
	input := object{"format": audioFormat(s.start.InputRate), "transcription": object{"model": "gpt-4o-mini-transcribe"}}
	if s.start.TurnDetection == protocol.TurnDetectionClient {
		input["turn_detection"] = nil
	}
	output := object{"format": audioFormat(s.start.OutputRate)}
	if s.start.Voice != "" {
		output["voice"] = s.start.Voice
	}
	session := object{"type": "realtime", "output_modalities": []string{"audio"}, "audio": object{"input": input, "output": output}}
	if tools {
		session["tools"] = []object{{"type": "mcp", "server_label": "voicegw"}}
	}
	return session
}

// played ends an item, and reports an interrupted one as clients do.
func (s *realtimeState) played(m *protocol.Playback) []any {
	i := s.items[m.ItemID]
	if !m.Done || i == nil {
		return nil
	}
	delete(s.items, m.ItemID)
	if !i.flushed {
		return nil
	}
	return []any{object{"type": openaiwire.ItemTruncate, "item_id": m.ItemID, "content_index": 0, "audio_end_ms": m.PlayedMS}}
}

// closed says that the session has ended, if the connection was closed in order: a server that does so has hung up.
func (s *realtimeState) closed(err error, to *inbox) {
	reason := endedByModel
	if s.leaving {
		reason = "client_ended"
	}
	if !s.over && (s.leaving || websocket.CloseStatus(err) == websocket.StatusNormalClosure) {
		s.over = true
		to.say(&protocol.SessionEnded{Reason: reason})
	}
}

// realtimeEvent has the fields of all server events that are read.
type realtimeEvent struct {
	Type         string              `json:"type"`
	ItemID       string              `json:"item_id"`
	Delta        string              `json:"delta"`
	Transcript   string              `json:"transcript"`
	AudioStartMS int64               `json:"audio_start_ms"`
	AudioEndMS   int64               `json:"audio_end_ms"`
	Session      struct{ ID string } `json:"session"`
	Item         realtimeObject      `json:"item"`
	Response     struct {
		Status        string `json:"status"`
		StatusDetails *struct {
			Error *realtimeError `json:"error"`
		} `json:"status_details"`
	} `json:"response"`
	Error realtimeError `json:"error"`
}

type realtimeObject struct {
	ID                string          `json:"id"`
	Type              string          `json:"type"`
	Name              string          `json:"name"`
	Arguments         string          `json:"arguments"`
	Error             json.RawMessage `json:"error"`
	ApprovalRequestID string          `json:"approval_request_id"`
	Approve           bool            `json:"approve"`
}

type realtimeError struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param"`
}

// hear translates a server event. Events that the engine does not need are ignored, as clients ignore unknown ones.
func (s *realtimeState) hear(data []byte, to *inbox) error {
	var e realtimeEvent
	if err := json.Unmarshal(data, &e); err != nil || e.Type == "" {
		return wrong(data, "it is not an event of the OpenAI Realtime protocol: %w", cmp.Or(err, errNoType))
	}
	if e.Type == openaiwire.AudioDelta {
		return s.hearAudio(data, e, to)
	}
	s.translate(e, to)
	return nil
}

var errNoType = errors.New("it has no type")

func (s *realtimeState) hearAudio(data []byte, e realtimeEvent, to *inbox) error {
	i := s.item(e.ItemID)
	if i == nil {
		return wrong(data, "more than %d answers are open at once", maxRealtimeItems)
	}
	pcm, err := audio.AppendFromBase64(nil, []byte(e.Delta))
	if err != nil {
		return wrong(data, "delta: %w", err)
	}
	if s.start.OutputRate == audio8k {
		pcm = audio.AppendFromULaw(nil, pcm)
	}
	if len(pcm)%audio.BytesPerSample != 0 {
		return wrong(data, "delta has half a sample")
	}
	if !i.begun {
		i.begun = true
		to.say(&protocol.AudioStart{Header: inTurn(i.turn), ItemID: e.ItemID})
	}
	i.bytes += len(pcm)
	to.sound(pcm)
	return nil
}

// item returns an item by its id, a new one if need be; nil at the limit.
func (s *realtimeState) item(id string) *realtimeItem {
	i := s.items[id]
	if i == nil && len(s.items) < maxRealtimeItems {
		i = &realtimeItem{turn: s.turn}
		s.items[id] = i
	}
	return i
}

func (s *realtimeState) translate(e realtimeEvent, to *inbox) {
	switch e.Type {
	case "session.created":
		s.sessionID = e.Session.ID
	case "session.updated":
		if !s.began {
			s.began = true
			to.say(&protocol.SessionStarted{SessionID: s.sessionID, InputRate: s.start.InputRate, OutputRate: s.start.OutputRate})
		}
	case "input_audio_buffer.speech_started":
		to.say(&protocol.SpeechStarted{Header: inTurn(s.turn + 1), AudioMS: e.AudioStartMS})
		s.flush("user_speech", to)
	case "input_audio_buffer.speech_stopped":
		to.say(&protocol.SpeechStopped{Header: inTurn(s.turn + 1), AudioMS: e.AudioEndMS})
	case "conversation.item.input_audio_transcription.delta", "conversation.item.input_audio_transcription.completed":
		if s.user.id != e.ItemID {
			s.user.id, s.user.text = e.ItemID, ""
		}
		to.say(transcript(&s.user.text, e, inTurn(s.turn), "user"))
	case "response.created":
		s.turn++
		s.active = true
		to.say(&protocol.TurnStarted{Header: inTurn(s.turn)})
	case "response.output_audio_transcript.delta", "response.output_audio_transcript.done":
		if i := s.item(e.ItemID); i != nil { // otherwise its audio is refused
			to.say(transcript(&i.text, e, inTurn(i.turn), "assistant"))
		}
	case "response.output_audio.done":
		s.end(e.ItemID, to)
	case "response.done":
		s.done(e, to)
	case "response.output_item.added", "response.output_item.done", "conversation.item.added":
		s.tool(e, to)
	case "error":
		s.failed(e.Error, to)
	}
}

// transcript adds the words of an event to a text.
func transcript(text *string, e realtimeEvent, turn protocol.Header, role string) *protocol.Transcript {
	final := !strings.HasSuffix(e.Type, ".delta")
	if *text += e.Delta; final {
		*text = e.Transcript
	}
	return &protocol.Transcript{Header: turn, ID: e.ItemID, Role: role, Text: *text, Final: final}
}

// flush drops all items: clients fall silent when the user speaks, whatever the server does.
func (s *realtimeState) flush(reason string, to *inbox) {
	for _, id := range s.open() {
		if i := s.items[id]; i.begun && !i.flushed {
			i.flushed = true
			to.say(&protocol.AudioFlush{Header: inTurn(i.turn), ItemID: id, Reason: reason})
		}
	}
}

// open returns the ids of the items in a fixed order.
func (s *realtimeState) open() []string {
	return slices.SortedFunc(maps.Keys(s.items), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.items[a].turn, s.items[b].turn), cmp.Compare(a, b))
	})
}

func (s *realtimeState) end(id string, to *inbox) {
	if i := s.items[id]; i != nil && i.begun && !i.ended && !i.flushed {
		i.ended = true
		to.say(&protocol.AudioEnd{Header: inTurn(i.turn), ItemID: id, AudioMS: audio.MS(s.start.OutputRate, i.bytes)})
	}
}

// realtimeStatus has the status of turn.ended for that of a response.
var realtimeStatus = map[string]string{
	openaiwire.Completed: "completed", openaiwire.Incomplete: "completed", openaiwire.Cancelled: "interrupted"}

func (s *realtimeState) done(e realtimeEvent, to *inbox) {
	s.active = false
	s.owed, s.after = append(s.owed, s.after...), nil
	if s.stopping {
		s.stopping = false
		s.flush("user_stop", to)
	}
	for _, id := range s.open() { // a server that cancels may not end its items
		s.end(id, to)
		if !s.items[id].begun {
			delete(s.items, id)
		}
	}
	if d := e.Response.StatusDetails; d != nil && d.Error != nil {
		to.say(&protocol.Error{Header: inTurn(s.turn), Code: cmp.Or(d.Error.Code, d.Error.Type), Message: d.Error.Message})
	}
	to.say(&protocol.TurnEnded{Header: inTurn(s.turn), Status: cmp.Or(realtimeStatus[e.Response.Status], "failed")})
}

// tool translates the items of the gateway's own tools, which are seen only on request.
func (s *realtimeState) tool(e realtimeEvent, to *inbox) {
	item, turn := e.Item, inTurn(s.turn)
	switch [2]string{e.Type, item.Type} {
	case [2]string{"response.output_item.added", openaiwire.MCPCall}:
		to.say(&protocol.ToolStarted{Header: turn, CallID: item.ID, Tool: item.Name})
	case [2]string{"response.output_item.done", openaiwire.MCPCall}:
		ended := &protocol.ToolEnded{Header: turn, CallID: item.ID, Tool: item.Name, OK: true}
		if len(item.Error) > 0 && string(item.Error) != "null" {
			ended.OK, ended.Error = false, item.Error
		}
		to.say(ended)
	case [2]string{"conversation.item.added", openaiwire.MCPRequest}:
		ask := &protocol.ConfirmationRequest{Header: turn, Token: item.ID, Tool: item.Name, Preview: item.Name + " " + item.Arguments}
		if json.Valid([]byte(item.Arguments)) {
			ask.Args = json.RawMessage(item.Arguments)
		}
		to.say(ask)
	case [2]string{"conversation.item.added", openaiwire.MCPResponse}:
		outcome := "denied"
		if item.Approve {
			outcome = "approved"
		}
		to.say(&protocol.ConfirmationEnded{Header: turn, Token: item.ApprovalRequestID, Outcome: outcome})
	}
}

// cancelTooLate is the answer to response.cancel without a response: the user stopped an answer that was complete.
const cancelTooLate = "response_cancel_not_active"

func (s *realtimeState) failed(e realtimeError, to *inbox) {
	if s.stopping && e.Code == cancelTooLate {
		s.stopping = false
		s.owed, s.after = append(s.owed, s.after...), nil
		s.flush("user_stop", to)
		return
	}
	to.say(&protocol.Error{Code: cmp.Or(e.Code, e.Type), Message: e.Message, Ref: e.Param})
}

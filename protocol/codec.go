package protocol

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"voicegw/internal/textutil"
	"voicegw/internal/user"
)

// MessageError describes an invalid message to the author of the peer.
type MessageError struct {
	// Code is [CodeInvalidMessage] or [CodeUnknownType].
	Code string
	// Field is the invalid field; empty for the whole message.
	Field string
	// Message explains the problem and the fix.
	Message string
}

// Error returns Message.
func (e *MessageError) Error() string { return e.Message }

func invalid(field, format string, args ...any) *MessageError {
	return &MessageError{Code: CodeInvalidMessage, Field: field, Message: fmt.Sprintf(format, args...)}
}

var clientTypes = byName[ClientMessage](ClientMessage.clientType,
	new(Start), new(InputText), new(InputImage), new(InputContext), new(InputActivity), new(Interrupt),
	new(Playback), new(ConfirmationResolve), new(ToolResult), new(End), new(Ping),
)

var serverTypes = byName[ServerMessage](ServerMessage.serverType,
	new(SessionStarted), new(AudioStart), new(AudioEnd), new(AudioFlush), new(SpeechStarted),
	new(SpeechStopped), new(Transcript), new(TurnStarted), new(TurnEnded), new(ToolStarted),
	new(ToolProgress), new(JobProgress), new(ToolMessage), new(ToolEnded), new(ConfirmationRequest),
	new(ConfirmationEnded), new(TextDelta), new(TextDone), new(ToolCall), new(VoiceSessionStart),
	new(UIImage), new(TurnUsage), new(Done), new(InspectCall), new(InspectIntent), new(InspectState),
	new(Timeout), new(SessionMoving), new(AgentSwitched), new(ClaimUnmatched), new(AnswerStopped), new(ProviderReconnecting),
	new(ProviderReconnected), new(SessionEnding), new(SessionEnded), new(Error), new(Pong),
)

// otherTypes are the messages that voicegw.v1 does not have.
var otherTypes = byName[ServerMessage](ServerMessage.serverType, new(AnswerEnded), new(CallTransfer))

// byName returns the messages' types by the names on the wire.
func byName[M any](name func(M) string, all ...M) map[string]reflect.Type {
	types := make(map[string]reflect.Type, len(all))
	for _, m := range all {
		types[name(m)] = reflect.TypeOf(m).Elem()
	}
	return types
}

// ParseClient parses a client's text frame, ignoring unknown fields of newer clients. The error is a *MessageError.
func ParseClient(data []byte) (ClientMessage, error) {
	typ, err := plainType(data), error(nil)
	if clientTypes[typ] == nil {
		if typ, err = messageType(data); err != nil {
			return nil, err
		}
	}
	if clientTypes[typ] == nil {
		return nil, &MessageError{Code: CodeUnknownType, Field: "type",
			Message: fmt.Sprintf("There is no message of type %s; the types are %s.", quoted(typ), knownClientTypes)}
	}
	m := reflect.New(clientTypes[typ]).Interface().(ClientMessage)
	if err := json.Unmarshal(data, m); err != nil {
		if _, wrong := messageType(data); wrong != nil {
			return nil, wrong
		}
		return nil, shapeError(typ, err)
	}
	if err := check(m, data); err != nil {
		return nil, err
	}
	return m, nil
}

// plainType saves parsing frequent frames twice; empty if the whole frame must be parsed.
func plainType(data []byte) string {
	rest, plain := bytes.CutPrefix(data, []byte(`{"type":"`))
	end := bytes.IndexByte(rest, '"')
	if !plain || end < 0 || !utf8.Valid(data) {
		return ""
	}
	// A later type would win. Its name may be in capitals or escaped.
	for i, c := range rest[end:] {
		if c == '\\' || (c == 't' || c == 'T') && bytes.EqualFold(rest[end+i:][:min(len("type"), len(rest)-end-i)], []byte("type")) {
			return ""
		}
	}
	return string(rest[:end])
}

// ParseServer parses a gateway's text frame. Unknown types become *Unknown. The error is a *MessageError.
func ParseServer(data []byte) (ServerMessage, error) {
	typ, err := messageType(data)
	if err != nil {
		return nil, err
	}
	of := cmp.Or(serverTypes[typ], otherTypes[typ])
	if of == nil {
		u := &Unknown{Raw: bytes.Clone(data)}
		if err := json.Unmarshal(data, &u.Header); err != nil {
			return nil, shapeError(typ, err)
		}
		return u, nil
	}
	m := reflect.New(of).Interface().(ServerMessage)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, shapeError(typ, err)
	}
	return m, nil
}

// EncodeClient encodes a message as a text frame.
func EncodeClient(m ClientMessage) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.clientType(), err)
	}
	out := append([]byte(`{"type":`), strconv.AppendQuote(nil, m.clientType())...)
	if len(body) > len("{}") {
		out = append(append(out, ','), body[1:]...)
		return out, nil
	}
	return append(out, '}'), nil
}

// EncodeServer encodes a message as a text frame with its type and seq.
func EncodeServer(seq int64, m ServerMessage) ([]byte, error) {
	h := m.header()
	h.Type, h.Seq = m.serverType(), seq
	out, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", h.Type, err)
	}
	return out, nil
}

// Renumber changes the seq of a message encoded by [EncodeServer]. It may overwrite message.
func Renumber(message []byte, seq int64) []byte {
	// The header comes first and a type has no quotes, so the first such key is the header's.
	key := []byte(`"seq":`)
	from := bytes.Index(message, key)
	if from < 0 {
		return message
	}
	from += len(key)
	to := from
	for to < len(message) && message[to] >= '0' && message[to] <= '9' {
		to++
	}
	return slices.Replace(message, from, to, strconv.AppendInt(nil, seq, 10)...)
}

func messageType(data []byte) (string, error) {
	var head struct {
		Type *string `json:"type"`
	}
	if !utf8.Valid(data) {
		return "", invalid("", "The message is not valid UTF-8.")
	}
	if err := json.Unmarshal(data, &head); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) && te.Field == "type" {
			return "", invalid("type", "The field type must be a string, not %s.", te.Value)
		}
		if errors.As(err, &te) {
			return "", invalid("", "A message must be a JSON object with a type, not %s.", te.Value)
		}
		return "", invalid("", "The message is not JSON: a text frame must hold one JSON object, such as {\"type\":\"ping\",\"t\":1}.")
	}
	if head.Type == nil {
		return "", invalid("type", "The message has no type.")
	}
	return *head.Type, nil
}

func shapeError(typ string, err error) error {
	var te *json.UnmarshalTypeError
	if errors.As(err, &te) {
		return invalid(te.Field, "%s: the field %s must be %s, not %s.", typ, te.Field, jsonKind(te.Type.Kind().String()), te.Value)
	}
	return invalid("", "%s: the message could not be read.", typ)
}

func jsonKind(goKind string) string {
	switch {
	case strings.HasPrefix(goKind, "int"):
		return "a whole number"
	case strings.HasPrefix(goKind, "float"):
		return "a number"
	case goKind == "bool":
		return "true or false"
	case goKind == "struct" || goKind == "ptr":
		return "an object"
	default:
		return "a " + goKind
	}
}

// check validates a message with correctly typed fields; data is its JSON.
func check(m ClientMessage, data []byte) error {
	if err := checkNames(m); err != nil {
		return err
	}
	switch m := m.(type) {
	case *Start:
		return checkStart(m)
	case *InputText:
		if textutil.IsBlank(m.Text) {
			return invalid("text", "input.text: the field text is empty.")
		}
		return checkLength("input.text", "text", m.Text)
	case *Playback:
		if m.ItemID == "" {
			return invalid("item_id", "playback: the field item_id is missing.")
		}
		if m.PlayedMS < 0 {
			return invalid("played_ms", "playback: the field played_ms is negative (%d).", m.PlayedMS)
		}
		if m.ReceivedMS < 0 {
			return invalid("received_ms", "playback: the field received_ms is negative (%d).", m.ReceivedMS)
		}
	case *ConfirmationResolve:
		if m.Token == "" {
			return invalid("token", "confirmation.resolve: the field token is missing.")
		}
		return checkApproved(data)
	case *ToolResult:
		return checkResult(m)
	case *InputImage:
		return checkImage(m)
	case *InputContext:
		return checkContext(m)
	}
	return nil
}

// The limit is in bytes, because texts are buffered until the model is silent.
func checkContext(m *InputContext) error {
	if textutil.IsBlank(m.Text) {
		return invalid("text", "input.context: the field text is empty.")
	}
	if n := len(m.Text); n > MaxContextBytes {
		return invalid("text", "input.context: the field text has %d bytes; at most %d are accepted.", n, MaxContextBytes)
	}
	return nil
}

func checkImage(m *InputImage) error {
	if m.MIME != "image/jpeg" && m.MIME != "image/png" {
		return invalid("mime", "input.image: the field mime must be \"image/jpeg\" or \"image/png\", not %s.", quoted(m.MIME))
	}
	if _, err := m.File(); err != nil {
		return invalid("data", "input.image: the field data is wrong: %v.", err)
	}
	return nil
}

func checkResult(m *ToolResult) error {
	switch {
	case m.CallID == "":
		return invalid("call_id", "tool.result: the field call_id is missing.")
	case m.Error == nil:
		return nil
	case len(m.Result) > 0:
		return invalid("error", "tool.result: the fields result and error exclude each other.")
	case strings.TrimSpace(m.Error.Message) == "":
		return invalid("error.message", "tool.result: the field error.message is empty.")
	}
	return checkLength("tool.result", "error.message", m.Error.Message)
}

// checkNames rejects long ids and names, because truncated ones would identify something else.
func checkNames(m ClientMessage) error {
	type field struct{ name, value string }
	var fields []field
	switch m := m.(type) {
	case *Start:
		fields = []field{{"provider", m.Provider}, {"agent", m.Agent}, {"voice", m.Voice}, {"conversation_id", m.ConversationID}}
		if c := m.Client; c != nil {
			fields = append(fields, field{"client.name", c.Name}, field{"client.version", c.Version})
		}
		if r := m.Resume; r != nil {
			fields = append(fields, field{"resume.session_id", r.SessionID}, field{"resume.token", r.Token})
			if r.Audio != nil {
				fields = append(fields, field{"resume.audio.item_id", r.Audio.ItemID})
			}
		}
	case *InputText:
		fields = []field{{"id", m.ID}}
	case *Playback:
		fields = []field{{"item_id", m.ItemID}}
	case *ConfirmationResolve:
		fields = []field{{"token", m.Token}}
	case *ToolResult:
		fields = []field{{"call_id", m.CallID}}
	}
	for _, f := range fields {
		if n := utf8.RuneCountInString(f.value); n > MaxNameChars {
			return invalid(f.name, "%s: the field %s has %d characters; at most %d are accepted.", m.clientType(), f.name, n, MaxNameChars)
		}
	}
	return nil
}

// checkApproved rejects a missing answer, which would count as a no.
func checkApproved(data []byte) error {
	var given struct {
		Approved *bool `json:"approved"`
	}
	if json.Unmarshal(data, &given) != nil || given.Approved == nil {
		return invalid("approved", "confirmation.resolve: the field approved is missing; it is true or false.")
	}
	return nil
}

func checkStart(m *Start) error {
	if !slices.Contains(InputRates(), m.InputRate) {
		return invalid("input_rate", "session.start: the field input_rate must be one of %v Hz, not %d.", InputRates(), m.InputRate)
	}
	if !slices.Contains(OutputRates(), m.OutputRate) {
		return invalid("output_rate", "session.start: the field output_rate must be one of %v Hz, not %d.", OutputRates(), m.OutputRate)
	}
	switch m.TurnDetection {
	case "", TurnDetectionServer, TurnDetectionClient:
	default:
		return invalid("turn_detection", "session.start: the field turn_detection must be \"server\" or \"client\", not %s.",
			quoted(m.TurnDetection))
	}
	if err := checkResume(m.Resume); err != nil {
		return err
	}
	if len(m.Ticket) > MaxTicketBytes {
		return invalid("ticket", "session.start: the field ticket is too long.")
	}
	if m.TimeZone != "" {
		if _, err := user.LoadZone(m.TimeZone); err != nil {
			return invalid("time_zone", "session.start: the field time_zone must be an IANA name such as "+
				"\"Europe/Berlin\", not %s.", quoted(m.TimeZone))
		}
	}
	return checkLength("session.start", "pending_request", m.PendingRequest)
}

func checkResume(r *Resume) error {
	switch {
	case r == nil:
		return nil
	case r.SessionID == "":
		return invalid("resume.session_id", "session.start: the field resume.session_id is missing.")
	case r.Token == "":
		return invalid("resume.token", "session.start: the field resume.token is missing.")
	case r.LastSeq < 0:
		return invalid("resume.last_seq", "session.start: the field resume.last_seq is negative (%d).", r.LastSeq)
	}
	if in := r.Input; in != nil && (in.FromMS < 0 || in.ToMS < in.FromMS || in.ToMS > maxInputMS) {
		return invalid("resume.input", "session.start: the field resume.input is invalid (from_ms %d, to_ms %d); from_ms may "+
			"not be negative, nor higher than to_ms, and to_ms not higher than %d.",
			in.FromMS, in.ToMS, int64(maxInputMS))
	}
	switch {
	case r.Audio == nil:
		return nil
	case r.Audio.ItemID == "":
		return invalid("resume.audio.item_id", "session.start: the field resume.audio.item_id is missing.")
	case r.Audio.ReceivedMS < 0:
		return invalid("resume.audio.received_ms", "session.start: the field resume.audio.received_ms is negative (%d).",
			r.Audio.ReceivedMS)
	}
	return nil
}

// maxInputMS limits a position on the input clock to about 34 years.
const maxInputMS = 1 << 40

func checkLength(typ, field, text string) error {
	if n := utf8.RuneCountInString(text); n > MaxTextChars {
		return invalid(field, "%s: the field %s has %d characters; at most %d are accepted.", typ, field, n, MaxTextChars)
	}
	return nil
}

func quoted(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return strconv.Quote(s)
}

var knownClientTypes = strings.Join(slices.Sorted(maps.Keys(clientTypes)), ", ")

// subprotocols returns the client's offers in order (RFC 6455 section 11.3.4), maybe in several headers.
func subprotocols(h http.Header) []string {
	var out []string
	for _, line := range h.Values("Sec-WebSocket-Protocol") {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// ticketPrefix marks a ticket in the list of subprotocols, keyPrefix a console's key. In a handshake, browsers can
// send a secret only there or in the URL, which is visible.
const (
	ticketPrefix = "voicegw.ticket."
	keyPrefix    = "voicegw.key."
)

// TicketSubprotocol is the subprotocol with a ticket.
func TicketSubprotocol(ticket string) string { return ticketPrefix + ticket }

const resumeSubprotocol = "voicegw.resume"

// ComesBack reports whether a request resumes a session. A full gateway refuses others with 503.
func ComesBack(h http.Header) bool { return slices.Contains(subprotocols(h), resumeSubprotocol) }

// secretOf returns the secret after that prefix, if any. ok is false if several differ or one is too long.
func secretOf(offered []string, prefix string) (secret string, ok bool) {
	for _, o := range offered {
		t, found := strings.CutPrefix(o, prefix)
		switch {
		case !found:
		case len(t) > MaxTicketBytes || secret != "" && t != secret:
			return "", false
		default:
			secret = t
		}
	}
	return secret, true
}

// OfferedSecret returns the unverified secret after a prefix in a request's subprotocols; empty without one. ok is false
// if several differ or one is too long.
func OfferedSecret(h http.Header, prefix string) (secret string, ok bool) {
	return secretOf(subprotocols(h), prefix)
}

// OfferedKey returns the unverified console key in a request's subprotocols, a secret; empty unless there is one.
func OfferedKey(h http.Header) string {
	key, _ := secretOf(subprotocols(h), keyPrefix)
	return key
}

// OffersTicket reports whether a request has a ticket in its subprotocols.
func OffersTicket(h http.Header) bool {
	ticket, ok := secretOf(subprotocols(h), ticketPrefix)
	return ok && ticket != ""
}

// TraceHeader is the request header of W3C Trace Context,
// https://www.w3.org/TR/trace-context-1/#traceparent-header (Recommendation of 2021-11-23).
const TraceHeader = "Traceparent"

// TraceParent is the caller's span. The zero value means none. Compare with ==.
type TraceParent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled reports whether the caller records the trace.
	Sampled bool
}

// IsZero reports whether p is empty: there is no parent.
func (p TraceParent) IsZero() bool { return p.Trace == [16]byte{} }

// Layout: version "-" trace "-" span "-" flags.
const (
	headerLength = 55
	traceAt      = 3
	spanAt       = 36
	flagsAt      = 53
	flagSampled  = 1 // the only flag that is read
)

// ParseTraceParent parses a header. Callers ignore invalid ones. Later versions may append parts (section 3.2.4).
func ParseTraceParent(text string) (p TraceParent, ok bool) {
	if len(text) < headerLength || text[2] != '-' || text[spanAt-1] != '-' || text[flagsAt-1] != '-' {
		return TraceParent{}, false
	}
	version, flags := [1]byte{}, [1]byte{}
	if !lowerHex(version[:], text[:2]) || !lowerHex(p.Trace[:], text[traceAt:spanAt-1]) ||
		!lowerHex(p.Span[:], text[spanAt:flagsAt-1]) || !lowerHex(flags[:], text[flagsAt:headerLength]) {
		return TraceParent{}, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(text) != headerLength, len(text) > headerLength && text[headerLength] != '-',
		p.Trace == [16]byte{}, p.Span == [8]byte{}:
		return TraceParent{}, false
	}
	p.Sampled = flags[0]&flagSampled != 0
	return p, true
}

func lowerHex(to []byte, text string) bool {
	for _, c := range []byte(text) {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// String returns the header value, or "" for none.
func (p TraceParent) String() string {
	if p.IsZero() {
		return ""
	}
	flags := "-00"
	if p.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(p.Trace[:]) + "-" + hex.EncodeToString(p.Span[:]) + flags
}

type traceParentKey struct{}

// WithTraceParent returns a context with the caller's span.
func WithTraceParent(ctx context.Context, p TraceParent) context.Context {
	if p.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, traceParentKey{}, p)
}

// TraceParentFrom returns the span set by WithTraceParent, or none.
func TraceParentFrom(ctx context.Context) TraceParent {
	p, _ := ctx.Value(traceParentKey{}).(TraceParent)
	return p
}

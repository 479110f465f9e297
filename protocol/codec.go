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
	"regexp"
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

var clientTypes = func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, m := range []ClientMessage{
		new(Start), new(InputText), new(InputImage), new(InputContext), new(InputActivity), new(Interrupt),
		new(Playback), new(ConfirmationResolve), new(ToolResult), new(End), new(Ping),
	} {
		types[m.clientType()] = reflect.TypeOf(m).Elem()
	}
	return types
}()

var serverTypes = byTag(
	new(SessionStarted), new(AudioStart), new(AudioEnd), new(AudioFlush), new(SpeechStarted),
	new(SpeechStopped), new(Transcript), new(TurnStarted), new(TurnEnded), new(ToolStarted),
	new(ToolProgress), new(JobProgress), new(ToolMessage), new(ToolEnded), new(ConfirmationRequest),
	new(ConfirmationEnded), new(TextDelta), new(TextDone), new(ToolCall), new(VoiceSessionStart),
	new(UIImage), new(TurnUsage), new(Done), new(InspectCall), new(InspectIntent), new(InspectState),
	new(Timeout), new(SessionMoving), new(AgentSwitched), new(ClaimUnmatched), new(AnswerStopped), new(ProviderReconnecting),
	new(ProviderReconnected), new(SessionEnding), new(SessionEnded), new(Error), new(Pong),
)

// otherTypes are the messages that voicegw.v1 does not have.
var otherTypes = byTag(new(AnswerEnded), new(CallTransfer))

// serverNames are the names on the wire by type.
var serverNames = func() map[reflect.Type]string {
	names := map[reflect.Type]string{}
	for name, of := range serverTypes {
		names[of] = name
	}
	for name, of := range otherTypes {
		names[of] = name
	}
	return names
}()

// byTag returns the messages' types by the names on the wire, which are the tags of their headers.
func byTag(all ...ServerMessage) map[string]reflect.Type {
	types := make(map[string]reflect.Type, len(all))
	for _, m := range all {
		of := reflect.TypeOf(m).Elem()
		types[of.Field(0).Tag.Get("type")] = of
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

// EncodeServer encodes a message, which is not an [Unknown], as a text frame with its type and seq.
func EncodeServer(seq int64, m ServerMessage) ([]byte, error) {
	h := m.header()
	h.Type, h.Seq = serverNames[reflect.TypeOf(m).Elem()], seq
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

// checker makes the errors about the fields of a message of a type.
type checker struct{ typ string }

// must returns an error unless ok. The format continues a sentence that begins with the field.
func (c checker) must(ok bool, field, format string, args ...any) *MessageError {
	if ok {
		return nil
	}
	return invalid(field, c.typ+": the field "+field+" "+format, args...)
}

// name rejects long ids and names, because truncated ones would identify something else.
func (c checker) name(field, value string) *MessageError {
	return c.atMost(MaxNameChars, field, value)
}

func (c checker) atMost(limit int, field, value string) *MessageError {
	if len(value) <= limit {
		return nil
	}
	n := utf8.RuneCountInString(value)
	return c.must(n <= limit, field, "has %d characters; at most %d are accepted.", n, limit)
}

func (c checker) given(field, value string) *MessageError {
	return c.must(value != "", field, "is missing.")
}

func (c checker) notNegative(field string, value int64) *MessageError {
	return c.must(value >= 0, field, "is negative (%d).", value)
}

// check validates a message with correctly typed fields; data is its JSON.
func check(m ClientMessage, data []byte) *MessageError {
	c := checker{m.clientType()}
	switch m := m.(type) {
	case *Start:
		return c.start(m)
	case *InputText:
		return cmp.Or(c.name("id", m.ID), c.must(!textutil.IsBlank(m.Text), "text", "is empty."), c.atMost(MaxTextChars, "text", m.Text))
	case *Playback:
		return cmp.Or(c.name("item_id", m.ItemID), c.given("item_id", m.ItemID),
			c.notNegative("played_ms", m.PlayedMS), c.notNegative("received_ms", m.ReceivedMS))
	case *ConfirmationResolve:
		return cmp.Or(c.name("token", m.Token), c.given("token", m.Token), c.approved(data))
	case *ToolResult:
		return cmp.Or(c.name("call_id", m.CallID), c.given("call_id", m.CallID), c.failure(m))
	case *InputImage:
		return c.image(m)
	case *InputContext: // its limit is in bytes, because texts are buffered until the model is silent
		return cmp.Or(c.must(!textutil.IsBlank(m.Text), "text", "is empty."), c.must(len(m.Text) <= MaxContextBytes, "text",
			"has %d bytes; at most %d are accepted.", len(m.Text), MaxContextBytes))
	}
	return nil
}

func (c checker) image(m *InputImage) *MessageError {
	if m.MIME != "image/jpeg" && m.MIME != "image/png" {
		return c.must(false, "mime", "must be \"image/jpeg\" or \"image/png\", not %s.", quoted(m.MIME))
	}
	_, err := m.File()
	return c.must(err == nil, "data", "is wrong: %v.", err)
}

func (c checker) failure(m *ToolResult) *MessageError {
	switch {
	case m.Error == nil:
		return nil
	case len(m.Result) > 0:
		return invalid("error", "tool.result: the fields result and error exclude each other.")
	}
	return cmp.Or(c.must(strings.TrimSpace(m.Error.Message) != "", "error.message", "is empty."),
		c.atMost(MaxTextChars, "error.message", m.Error.Message))
}

// approved rejects a missing answer, which would count as a no.
func (c checker) approved(data []byte) *MessageError {
	var answer struct {
		Approved *bool `json:"approved"`
	}
	err := json.Unmarshal(data, &answer)
	return c.must(err == nil && answer.Approved != nil, "approved", "is missing; it is true or false.")
}

func (c checker) start(m *Start) *MessageError {
	client, resume := cmp.Or(m.Client, &ClientInfo{}), cmp.Or(m.Resume, &Resume{})
	_, zoneErr := user.LoadZone(cmp.Or(m.TimeZone, "UTC"))
	return cmp.Or(
		c.name("provider", m.Provider), c.name("agent", m.Agent), c.name("voice", m.Voice), c.name("conversation_id", m.ConversationID),
		c.name("client.name", client.Name), c.name("client.version", client.Version),
		c.name("resume.session_id", resume.SessionID), c.name("resume.token", resume.Token),
		c.name("resume.audio.item_id", cmp.Or(resume.Audio, &ResumeAudio{}).ItemID),
		c.must(slices.Contains(InputRates(), m.InputRate), "input_rate", "must be one of %v Hz, not %d.", InputRates(), m.InputRate),
		c.must(slices.Contains(OutputRates(), m.OutputRate), "output_rate", "must be one of %v Hz, not %d.", OutputRates(), m.OutputRate),
		c.must(slices.Contains([]string{"", TurnDetectionServer, TurnDetectionClient}, m.TurnDetection), "turn_detection",
			"must be \"server\" or \"client\", not %s.", quoted(m.TurnDetection)),
		c.resume(m.Resume),
		c.must(len(m.Ticket) <= MaxTicketBytes, "ticket", "is too long."),
		c.must(zoneErr == nil, "time_zone", "must be an IANA name such as \"Europe/Berlin\", not %s.", quoted(m.TimeZone)),
		c.atMost(MaxTextChars, "pending_request", m.PendingRequest),
	)
}

func (c checker) resume(r *Resume) *MessageError {
	if r == nil {
		return nil
	}
	in, heard := cmp.Or(r.Input, &ResumeInput{}), cmp.Or(r.Audio, &ResumeAudio{ItemID: "none"})
	return cmp.Or(
		c.given("resume.session_id", r.SessionID), c.given("resume.token", r.Token), c.notNegative("resume.last_seq", r.LastSeq),
		c.must(in.FromMS >= 0 && in.ToMS >= in.FromMS && in.ToMS <= maxInputMS, "resume.input",
			"is invalid (from_ms %d, to_ms %d); from_ms may not be negative, nor higher than to_ms, and to_ms not higher than %d.",
			in.FromMS, in.ToMS, int64(maxInputMS)),
		c.given("resume.audio.item_id", heard.ItemID), c.notNegative("resume.audio.received_ms", heard.ReceivedMS),
	)
}

// maxInputMS limits a position on the input clock to about 34 years.
const maxInputMS = 1 << 40

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

// OfferedSecret returns the unverified secret after a prefix in a request's subprotocols; empty without one. ok is false
// if several differ or one is too long.
func OfferedSecret(h http.Header, prefix string) (secret string, ok bool) {
	for _, o := range subprotocols(h) {
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

// OfferedKey returns the unverified console key in a request's subprotocols, a secret; empty unless there is one.
func OfferedKey(h http.Header) string {
	key, _ := OfferedSecret(h, keyPrefix)
	return key
}

// OffersTicket reports whether a request has a ticket in its subprotocols.
func OffersTicket(h http.Header) bool {
	ticket, ok := OfferedSecret(h, ticketPrefix)
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

// traceParent has the version, the trace, the span, the flags, and the parts that a later version may append (section
// 3.2.4).
var traceParent = regexp.MustCompile(`(?s)^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// ParseTraceParent parses a header. Callers ignore invalid ones.
func ParseTraceParent(text string) (p TraceParent, ok bool) {
	m := traceParent.FindStringSubmatch(text)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[5] != "" {
		return TraceParent{}, false
	}
	_, traceErr := hex.Decode(p.Trace[:], []byte(m[2]))
	_, spanErr := hex.Decode(p.Span[:], []byte(m[3]))
	flags, flagsErr := strconv.ParseUint(m[4], 16, 8)
	if errors.Join(traceErr, spanErr, flagsErr) != nil || p.IsZero() || p.Span == [8]byte{} {
		return TraceParent{}, false
	}
	p.Sampled = flags&1 != 0 // the only flag that is read
	return p, true
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

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"voicegw/internal/logging"
	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/spec"
)

// TimeLayout is the form of a record's time: RFC 3339 in UTC with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

const (
	// MaxLine is the longest line that a Log writes, in bytes with its line break. Readers skip longer lines.
	MaxLine = 128 << 10

	// The bounds of a record, in bytes except maxList. A model may invent a tool's name of any length.
	maxString = 512
	maxBudget = 4 << 10
	maxNote   = 8 << 10
	maxIntent = 64
	maxID     = 128 // of a record in Evidence
	maxList   = 32  // clamped arguments, intents or ids
)

// MarshalJSON returns the record as a line of the audit, without the bounds of a Log.
func (r Record) MarshalJSON() ([]byte, error) {
	b, err := marshal(r)
	return bytes.TrimSuffix(b, []byte{'\n'}), err
}

func marshal(r Record) ([]byte, error) {
	type plain Record // without MarshalJSON, which would call itself
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// The outer fields come first and hide those of the same name.
	err := encoder.Encode(struct {
		Event Event  `json:"event"`
		Time  string `json:"time"`
		plain
	}{r.Event, r.Time.UTC().Format(TimeLayout), plain(r)})
	return b.Bytes(), err
}

// encode returns a record's line. It leaves out invalid parts and cuts or leaves out long ones, so it cannot fail.
func encode(r *Record, a Arguments) []byte {
	bounded := *r
	bound(&bounded)
	bounded.Args = a.render(r.Args)
	if line, err := marshal(bounded); err == nil && len(line) <= MaxLine {
		return logging.Tokens(line) // a model may write a token as an argument
	}
	// Only raw JSON and the numbers in it can be invalid or that long.
	bounded.Args, bounded.Budget, bounded.Clamped, bounded.NoteData = nil, nil, nil, nil
	line, err := marshal(bounded)
	if err != nil { // impossible: only strings, numbers and booleans are left
		return fmt.Appendf(nil, "{\"event\":%q,\"time\":%q,\"toolId\":\"\",\"sessionId\":\"\"}\n", EventTool,
			r.Time.UTC().Format(TimeLayout))
	}
	return line
}

// bound cuts values from outside that are too long, except Args, which render bounds.
func bound(r *Record) {
	r.Event, r.Category, r.Mode = Event(short(string(r.Event))), spec.Category(short(string(r.Category))), spec.Mode(short(string(r.Mode)))
	r.ErrorType = registry.ErrorType(short(string(r.ErrorType)))
	for _, s := range []*string{
		&r.ToolID, &r.ToolVersion, &r.ToolVariant, &r.RegistryVersion, &r.Channel, &r.SessionID, &r.UserID, &r.ConversationID, &r.Agent,
		&r.AgentVersion, &r.From, &r.CallID, &r.ParentCallID, &r.ProviderCallID,
		&r.IdempotencyKey, &r.BusinessKey, &r.Confirmation, &r.ConfirmedBy, &r.Reference, &r.Why, &r.NotDelivered, &r.Prices,
		&r.KeyID, &r.Note, &r.Job, &r.Claim, &r.Check,
	} {
		*s = short(*s)
	}
	if len(r.Budget) > maxBudget || !json.Valid(r.Budget) {
		r.Budget = nil
	}
	if len(r.NoteData) > maxNote || !json.Valid(r.NoteData) {
		r.NoteData = nil
	}
	if len(r.Clamped) > 0 {
		r.Clamped = boundClamped(r.Clamped)
	}
	r.Evidence = boundList(r.Evidence, maxID)
	r.Intents, r.Refused = boundList(r.Intents, maxIntent), boundList(r.Refused, maxIntent)
}

// short cuts a string that is too long, between characters.
func short(s string) string { return cut(s, maxString) }

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len("…")
	for range utf8.UTFMax {
		if utf8.RuneStart(s[n]) {
			break
		}
		n--
	}
	return s[:n] + "…"
}

// boundClamped keeps at most maxList clamped arguments. An invalid or very long number becomes 0.
func boundClamped(clamped map[string]registry.Clamped) map[string]registry.Clamped {
	kept := make(map[string]registry.Clamped, min(len(clamped), maxList))
	for _, name := range slices.Sorted(maps.Keys(clamped)) {
		if len(kept) == maxList {
			break
		}
		c := clamped[name]
		if n := c.Requested; n == "" || len(n) > 64 || n[0] != '-' && (n[0] < '0' || n[0] > '9') || !json.Valid([]byte(n)) {
			c.Requested = "0"
		}
		kept[short(name)] = c
	}
	return kept
}

func boundList[T ~string](list []T, limit int) []T {
	var kept []T
	for _, t := range list[:min(len(list), maxList)] {
		kept = append(kept, T(cut(string(t), limit)))
	}
	return kept
}

// Arguments selects how much of a call's arguments is written. An unknown value, or none, means ArgumentsNone.
type Arguments string

// The values of Arguments.
const (
	ArgumentsNone Arguments = "none"
	// ArgumentsRedacted writes their names and kinds, and no values.
	ArgumentsRedacted Arguments = "redacted"
	// ArgumentsFull writes them as the tool received them, up to 16 KiB.
	ArgumentsFull Arguments = "full"
)

const (
	maxArgs = 16 << 10 // bytes of arguments that ArgumentsFull writes

	// The bounds of redacted arguments.
	maxNodes    = 64 // values in all
	maxItems    = 8  // of one list
	maxNames    = 32 // of one object
	maxDepth    = 6
	maxName     = 64      // characters of a name
	maxRedacted = 1 << 20 // bytes before redaction
)

func (a Arguments) kept() bool { return a == ArgumentsRedacted || a == ArgumentsFull }

func (a Arguments) render(args json.RawMessage) json.RawMessage {
	switch {
	case !a.kept() || len(args) == 0:
		return nil
	case a == ArgumentsRedacted:
		return withoutValues(args)
	case len(args) > maxArgs:
		return marker(fmt.Sprintf("<arguments left out, %d bytes are more than %d>", len(args), maxArgs))
	case !json.Valid(args):
		return marker(fmt.Sprintf("<arguments left out, %d bytes are not JSON>", len(args)))
	}
	return args
}

func marker(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }

// withoutValues replaces the values in JSON by their kinds. The result has at most a few KiB.
func withoutValues(args json.RawMessage) json.RawMessage {
	if len(args) > maxRedacted {
		return marker(fmt.Sprintf("<arguments, %d bytes>", len(args)))
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber() // a number need not fit a float
	if err := decoder.Decode(&v); err != nil || decoder.InputOffset() != int64(len(bytes.TrimRight(args, " \t\r\n"))) {
		return marker(fmt.Sprintf("<arguments, %d bytes that are not JSON>", len(args)))
	}
	r := redactor{left: maxNodes}
	r.value(v, 0)
	return r.out.Bytes()
}

type redactor struct {
	out  bytes.Buffer
	left int // values that may still be written
}

func (r *redactor) text(format string, args ...any) {
	// plainName has checked the names, and kinds need no escaping.
	r.out.WriteString(`"` + fmt.Sprintf(format, args...) + `"`)
}

func (r *redactor) value(v any, depth int) {
	r.left--
	switch v := v.(type) {
	case nil:
		r.out.WriteString("null")
	case bool:
		r.text("<boolean>")
	case json.Number:
		r.text("<number>")
	case string:
		r.text("<string, %s>", textutil.Count(utf8.RuneCountInString(v), "character"))
	case []any:
		if depth == maxDepth {
			r.text("<list, %s>", textutil.Count(len(v), "item"))
			return
		}
		r.list(v, depth)
	case map[string]any:
		if depth == maxDepth {
			r.text("<object, %s>", textutil.Count(len(v), "name"))
			return
		}
		r.object(v, depth)
	}
}

func (r *redactor) list(list []any, depth int) {
	r.out.WriteByte('[')
	for i, item := range list {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if i == maxItems || r.left <= 0 {
			r.text("<%d more>", len(list)-i)
			break
		}
		r.value(item, depth+1)
	}
	r.out.WriteByte(']')
}

func (r *redactor) object(object map[string]any, depth int) {
	r.out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if i == maxNames || r.left <= 0 {
			r.out.WriteString(`"…":`)
			r.text("<%d more>", len(object)-i)
			break
		}
		if plainName(name) {
			r.text("%s", name)
		} else {
			// A model may invent a name that quotes the user. The number makes the replacement unique.
			r.text("<name %d, %s>", i+1, textutil.Count(utf8.RuneCountInString(name), "character"))
		}
		r.out.WriteByte(':')
		r.value(object[name], depth+1)
	}
	r.out.WriteByte('}')
}

func plainName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name[0] < '0' || name[0] > '9'
}

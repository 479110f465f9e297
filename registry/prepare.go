package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Prepared is a call that is ready to run. Clamp and SetIdempotencyKey must not run concurrently with other methods.
type Prepared struct {
	// Fixed after Prepare.
	tool     *Tool
	snapshot *Snapshot
	mode     spec.Mode
	closed   bool     // the tool was outside its times when the snapshot was made
	defaults []string // sorted JSON Pointers to arguments filled in from defaults
	invalid  []document.Problem

	// Owned by the caller.
	value   map[string]any
	args    json.RawMessage
	clamped map[string]Clamped
	key     string
	zone    *time.Location // of the user; nil if unknown
}

// Prepare prepares a model's call for policy and execution: it finds the tool, checks the mode, decodes raw strictly
// (empty is {}), applies defaults and validates. Invalid list items are dropped unless the tool writes: see Invalid.
// If it fails, the Envelope is the answer: NOT_FOUND, MODE_RESTRICTED, or VALIDATION with at most 20 errors and their
// paths.
func (s *Snapshot) Prepare(id string, mode spec.Mode, raw json.RawMessage) (*Prepared, *Envelope) {
	return s.PrepareDecoded(id, mode, Decode(raw))
}

// PrepareDecoded is [Snapshot.Prepare] for decoded arguments.
func (s *Snapshot) PrepareDecoded(id string, mode spec.Mode, args Arguments) (*Prepared, *Envelope) {
	start := time.Now()
	t, ok := s.Tool(id)
	if !ok {
		env := NotFound(document.Shorten(id, 100), s.version, time.Since(start))
		env.Error.Suggestion = cmp.Or(s.suggestName(id, mode), env.Error.Suggestion)
		s.stats.done(UnknownTool, &env)
		return nil, &env
	}
	refuse := func(e *Error) (*Prepared, *Envelope) {
		env := Envelope{Error: e, Meta: s.meta(t, time.Since(start))}
		s.stats.done(t.counted(), &env)
		return nil, &env
	}
	if !t.Allows(mode) {
		return refuse(NewError(ErrorModeRestricted,
			prompts.WrongMode(id, string(mode), strings.Join(spec.ModeNames(t.AllowedModes), " and "))))
	}
	p, problems := s.arguments(t, args)
	if len(problems) > 0 {
		return refuse(invalidArguments(id, problems))
	}
	p.mode, p.closed = mode, s.tools[id] == nil
	if len(p.defaults) > 0 && s.opts.Logger.Enabled(context.Background(), slog.LevelDebug) {
		s.opts.Logger.Debug("tool defaults applied", "tool", id, "defaults", p.defaults)
	}
	return p, nil
}

// arguments completes and validates arguments. A tool without side effects gets the valid part of lists; for that,
// raw is decoded again without the defaults.
func (s *Snapshot) arguments(t *Tool, args Arguments) (*Prepared, []document.Problem) {
	p, problems := s.whole(t, args, nil)
	if p != nil || t.Writes() || len(args.problems) > 0 {
		return p, problems
	}
	if part, _ := s.whole(t, Decode(args.raw), problems); part != nil {
		return part, nil
	}
	return nil, problems
}

func (s *Snapshot) whole(t *Tool, args Arguments, without []document.Problem) (*Prepared, []document.Problem) {
	if len(args.problems) > 0 {
		return nil, args.problems
	}
	value, ok := args.value.(map[string]any)
	if !ok {
		return nil, []document.Problem{{Message: fmt.Sprintf("must be an object with the arguments by name, got %s",
			document.Describe(args.value))}}
	}
	var invalid []document.Problem
	if without != nil {
		if invalid, ok = dropInvalid(value, without); !ok {
			return nil, without
		}
	}
	params := t.compiled.Parameters
	applied, full := params.Complete(value)
	if !full {
		return nil, []document.Problem{{Message: fmt.Sprintf(
			"leave out more than %d values that have defaults; send fewer items", document.MaxDefaults)}}
	}
	if problems := params.Validate(value); len(problems) > 0 {
		return nil, problems
	}
	p := &Prepared{tool: t, snapshot: s, value: value, args: document.AppendCanonical(make([]byte, 0, len(args.raw)+64),
		value), invalid: toldItems(invalid)}
	if err := t.handler.check(p.args); err != nil {
		return nil, []document.Problem{unreadable(err)}
	}
	for _, place := range applied {
		p.defaults = append(p.defaults, place.String())
	}
	slices.Sort(p.defaults)
	return p, nil
}

// unreadable describes a value that the schema accepts but the handler's struct cannot hold, such as an integer above
// 64 bits.
func unreadable(err error) document.Problem {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return document.Problem{Message: "cannot be read: " + document.Shorten(err.Error(), 200)}
	}
	path := ""
	if wrong.Field != "" {
		path = document.Pointer(strings.Split(wrong.Field, ".")).String()
	}
	return document.Problem{Path: path, Message: "is out of range: " + document.Shorten(wrong.Value, 100)}
}

func (s *Snapshot) suggestName(id string, mode spec.Mode) string {
	var names []string
	for _, t := range s.Tools(mode) {
		names = append(names, t.ToolID)
	}
	if len(names) == 0 {
		return ""
	}
	return prompts.UseAnotherTool(document.DidYouMean(document.Shorten(id, 100), names), document.Shorten(strings.Join(names, ", "), 1000))
}

func (s *Snapshot) meta(t *Tool, took time.Duration) Meta {
	return Meta{
		Tool: t.ToolID, ToolVersion: t.Version, RegistryVersion: s.version,
		DurationMS: took.Milliseconds(), ResponseSchemaVersion: ResponseSchemaVersion,
	}
}

func invalidArguments(tool string, problems []document.Problem) *Error {
	problems, more, details := problemDetails(problems)
	var said []string
	for i, p := range problems {
		if i == 3 {
			said = append(said, fmt.Sprintf("and %d more", len(problems)+more-i))
			break
		}
		place := cmp.Or(p.Path, "the arguments")
		said = append(said, document.Shorten(place, 100)+": "+strings.TrimSuffix(p.Message, "."))
	}
	e := NewError(ErrorValidation, prompts.InvalidArguments(tool, strings.Join(said, "; ")))
	e.Details = details
	return e
}

// Tool returns the call's tool.
func (p *Prepared) Tool() *Tool { return p.tool }

// Mode returns the call's mode.
func (p *Prepared) Mode() spec.Mode { return p.mode }

// Args returns the arguments with defaults, in canonical JSON (see [Arguments.Text]). The caller must not change
// them.
func (p *Prepared) Args() json.RawMessage { return p.args }

// RegistryVersion returns the registry version of the call.
func (p *Prepared) RegistryVersion() string { return p.snapshot.version }

// Refuse returns the caller's refusal of the call, with the lowered arguments.
func (p *Prepared) Refuse(e *Error) Envelope {
	env := p.snapshot.Refuse(p.tool.ToolID, e)
	env.Meta.Clamped, env.Meta.Invalid = maps.Clone(p.clamped), p.invalid
	return env
}

// Invalid returns the invalid list items that were dropped (at most 20), with their places in the model's arguments.
// A call continues without them if all lists still have items and the tool doesn't write: a partial write would be a
// different operation. The caller must not change the result.
func (p *Prepared) Invalid() []document.Problem { return p.invalid }

// Clamp lowers top-level numbers above the tool's own limits of the mode, or above limits, and returns them; nil if
// none. It changes Args, and Run's envelope reports it. It may be called again with lower limits. A limit below the
// argument's minimum still applies.
func (p *Prepared) Clamp(limits map[string]int) map[string]Clamped {
	all := maps.Clone(p.tool.Clamp[p.mode])
	for name, limit := range limits {
		if own, has := all[name]; !has || limit < own {
			if all == nil {
				all = map[string]int{}
			}
			all[name] = limit
		}
	}
	changed := false
	for name, limit := range all {
		number, ok := p.value[name].(json.Number)
		if !ok || !document.Above(number, limit) {
			continue
		}
		requested := json.Number(document.AppendNumber(nil, string(number)))
		if before, again := p.clamped[name]; again {
			requested = before.Requested
		}
		if p.clamped == nil {
			p.clamped = map[string]Clamped{}
		}
		p.clamped[name] = Clamped{Requested: requested, Applied: limit}
		p.value[name] = json.Number(strconv.Itoa(limit))
		changed = true
	}
	if changed {
		p.args = document.AppendCanonical(make([]byte, 0, len(p.args)), p.value)
	}
	return maps.Clone(p.clamped)
}

// BusinessKey fills the tool's idempotencyKey template with the arguments, as canonical JSON, so that different
// arguments give different keys; empty without a template. It is unique within the tool.
func (p *Prepared) BusinessKey() string {
	return p.tool.compiled.BusinessKey(p.value)
}

// Preview fills the tool's preview template with the arguments; without one it is the tool's name and its arguments
// as JSON.
func (p *Prepared) Preview() string {
	if text, has := p.tool.compiled.Preview(p.value, p.zone); has {
		return text
	}
	return p.tool.ToolID + " " + string(p.args)
}

// SetZone sets the user's time zone for the preview.
func (p *Prepared) SetZone(zone *time.Location) { p.zone = zone }

// SetIdempotencyKey sets Call.IdempotencyKey; the default is BusinessKey.
func (p *Prepared) SetIdempotencyKey(key string) { p.key = key }

// NeedsApproval reports whether a person must approve the call with its current arguments. If an argument of a
// condition is missing or has another type, approval is needed.
func (p *Prepared) NeedsApproval() bool {
	t := p.tool
	return t.RequiresConfirmation && (len(t.ConfirmWhen) == 0 ||
		slices.ContainsFunc(t.ConfirmWhen, func(c spec.ConfirmWhen) bool { return c.Asks(p.value) }))
}

// Arguments are a call's arguments as the model wrote them, decoded once. Decode accepts any input; PrepareDecoded
// reports the problems. A value may be prepared only once, because preparing fills in defaults.
type Arguments struct {
	raw      json.RawMessage
	value    any
	problems []document.Problem
	text     string
}

// Decode decodes arguments strictly; empty input means {}.
func Decode(raw json.RawMessage) Arguments {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	a := Arguments{raw: raw}
	a.value, a.problems, _ = document.Decode(raw, document.MaxArgsBytes, document.MaxArgsDepth)
	if len(a.problems) == 0 {
		a.text = string(document.AppendCanonical(make([]byte, 0, len(raw)), a.value))
	} else {
		a.text = string(bytes.TrimSpace(raw))
	}
	return a
}

// Text returns the canonical form, which is equal for equal arguments: RFC 8785, but with exact numbers and keys
// sorted by bytes. Invalid arguments are returned unchanged.
func (a Arguments) Text() string { return a.text }

// Object returns arguments for a conversation's history, which providers check: a valid JSON object as it was
// written, otherwise {}, because the call's error explains the problem. Lone surrogates are replaced.
func (a Arguments) Object() json.RawMessage {
	if _, ok := a.value.(map[string]any); !ok || len(a.problems) > 0 {
		return json.RawMessage("{}")
	}
	if lower := bytes.ToLower(a.raw); bytes.Contains(lower, []byte(`\ud`)) {
		return json.RawMessage(a.text)
	}
	return a.raw
}

// Value returns an argument: a string, bool, json.Number, nil, []any or map[string]any; nil if missing. The caller
// must not change it.
func (a Arguments) Value(name string) any {
	object, _ := a.value.(map[string]any)
	return object[name]
}

// dropInvalid removes, in place, the list items in value that problems are about, at all depths, and returns those
// problems. ok is false if a list would become empty, or if no problem is about a list item; value may then have
// changed.
func dropInvalid(value map[string]any, problems []document.Problem) (dropped []document.Problem, ok bool) {
	items := map[string]map[int]bool{} // the items to drop, by their list's pointer
	for _, p := range problems {
		list, index, found := innermostItem(value, p.Path)
		if !found {
			continue
		}
		if items[list] == nil {
			items[list] = map[int]bool{}
		}
		items[list][index] = true
		dropped = append(dropped, p)
	}
	// Innermost first, so that the remaining pointers stay valid.
	lists := slices.SortedFunc(maps.Keys(items), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, list := range lists {
		place, _ := document.ParsePointer(list)
		found, _ := document.At(value, place)
		all, _ := found.([]any)
		var kept []any
		for i, item := range all {
			if !items[list][i] {
				kept = append(kept, item)
			}
		}
		if len(kept) == 0 {
			return nil, false
		}
		holder, _ := document.At(value, place[:len(place)-1])
		switch parent := holder.(type) {
		case map[string]any:
			parent[place[len(place)-1]] = kept
		case []any:
			i, _ := strconv.Atoi(place[len(place)-1]) // innermostItem has checked it
			parent[i] = kept
		}
	}
	return dropped, len(dropped) > 0
}

func innermostItem(value any, path string) (list string, index int, found bool) {
	place, _ := document.ParsePointer(path)
	for i, token := range place {
		in, _ := document.At(value, place[:i])
		all, isList := in.([]any)
		if n, err := strconv.Atoi(token); isList && err == nil && n >= 0 && n < len(all) {
			list, index, found = place[:i].String(), n, true
		}
	}
	return list, index, found
}

func toldItems(dropped []document.Problem) []document.Problem {
	if more := len(dropped) - document.MaxProblems; more > 0 {
		dropped = append(slices.Clone(dropped[:document.MaxProblems]), document.Problem{Message: fmt.Sprintf("and %d more", more)})
	}
	return dropped
}

package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

const (
	// maxLiveValues limits an enum's values, and maxLiveValue a value's length in bytes. Others are dropped.
	maxLiveValues = 500
	maxLiveValue  = 200
	// maxFillings limits a snapshot's cached fillings. Sessions with the same values share one.
	maxFillings = 1024
)

// LiveValues returns a source's values for a session, in any order. Fill calls it for each source in use, except
// LiveTools.
type LiveValues func(source string, session Session) []string

// Fill returns the snapshot for a session: the enums that schema.json calls dynamic get the current values of live,
// in the providers' forms and in validation. A tool with an empty enum is dropped and logged. If live is nil, all
// sources except LiveTools are empty. A nil snapshot stays nil. Sessions with the same tools and values share a
// snapshot.
func (s *Snapshot) Fill(session Session, live LiveValues) *Snapshot {
	if s == nil {
		return nil
	}
	f := filling{from: s, tools: map[string]*Tool{}, values: map[string]map[string][]string{}}
	f.choose(session, live)
	if len(f.values) == 0 {
		return s
	}
	text, _ := document.Marshal(f.values) // texts only: cannot fail
	shared := s.sharedFillings()
	if shared == nil {
		return f.snapshot(text)
	}
	key := string(session.Mode) + " " + strings.Join(slices.Sorted(maps.Keys(f.tools)), " ") + " " + string(text) + " " +
		strings.Join(slices.Sorted(maps.Keys(s.closed)), " ")
	return shared.get(key, maxFillings, func() *Snapshot { return f.snapshot(text) })
}

// ToolsVersion returns the version of a session's tools: the file's version and, if enums were filled or variants
// drawn, "+" and the first 8 hex digits of their SHA-256.
func (s *Snapshot) ToolsVersion() string {
	switch others := s.drawn.ids(); {
	case others != "":
		sum := sha256.Sum256([]byte(s.filled + "\n" + others))
		return s.version + "+" + hex.EncodeToString(sum[:4])
	case s.filled != "":
		return s.version + "+" + s.filled
	}
	return s.version
}

type filling struct {
	from   *Snapshot
	tools  map[string]*Tool               // the remaining tools, unfilled
	values map[string]map[string][]string // by tool and place; nil for a tool that is left out
}

// choose finds the values of tools with live values, and drops tools without values.
func (f *filling) choose(session Session, live LiveValues) {
	known := map[string][]string{}
	for _, t := range f.from.sorted {
		if !t.Allows(session.Mode) {
			f.tools[t.ToolID] = t
			continue
		}
		values, empty := map[string][]string{}, ""
		for _, place := range slices.Sorted(maps.Keys(t.Dynamic)) {
			source := t.Dynamic[place]
			if source == spec.LiveTools {
				continue // known after all others
			}
			if _, asked := known[source]; !asked && live != nil {
				known[source] = f.usable(source, live(source, session))
			}
			if values[place] = known[source]; len(values[place]) == 0 {
				empty = source
			}
		}
		if empty != "" {
			f.values[t.ToolID] = nil
			f.from.stats.leaveOut(t.ToolID, empty, f.from.opts.Logger)
			continue
		}
		f.tools[t.ToolID] = t
		if len(values) > 0 {
			f.values[t.ToolID] = values
		}
	}
	f.chooseTools(session.Mode)
}

func (f *filling) chooseTools(mode spec.Mode) {
	var ids []string
	for id, t := range f.tools {
		if t.Allows(mode) && !isBuiltin(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	for id, t := range f.tools {
		for place, source := range t.Dynamic {
			if source != spec.LiveTools || !t.Allows(mode) {
				continue
			}
			if f.values[id] == nil {
				f.values[id] = map[string][]string{}
			}
			f.values[id][place] = ids[:min(len(ids), maxLiveValues)]
		}
	}
}

func (f *filling) usable(source string, values []string) []string {
	usable := make([]string, 0, len(values))
	for _, v := range values {
		if hidden, _ := document.Hidden(v); v != "" && len(v) <= maxLiveValue && utf8.ValidString(v) && hidden == "" &&
			!strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			usable = append(usable, v)
		}
	}
	slices.Sort(usable)
	usable = slices.Compact(usable)
	if left := len(values) - min(len(usable), maxLiveValues); left > 0 {
		f.from.opts.Logger.Debug("some live values are left out: repeated, too long or too many", "source", source, "left_out", left)
	}
	return usable[:min(len(usable), maxLiveValues)]
}

func (f *filling) snapshot(text []byte) *Snapshot {
	var tools []*Tool
	for id, t := range f.tools {
		if places := f.values[id]; len(places) > 0 {
			filled, err := t.fill(places)
			if err != nil {
				f.from.opts.Logger.Error("a tool is left out: models cannot get its live values", "tool", id, "error", err)
				continue
			}
			t = filled
		}
		tools = append(tools, t)
	}
	s := f.from.holding(tools)
	sum := sha256.Sum256(text)
	s.filled = hex.EncodeToString(sum[:4])
	return s
}

func (t *Tool) fill(places map[string][]string) (*Tool, error) {
	doc := document.Clone(t.compiled.Parameters.Doc)
	for place, values := range places {
		at, _ := document.ParsePointer(strings.TrimSuffix(place, "/enum"))
		found, _ := document.At(doc, at)
		schema, ok := found.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the parameters have no schema for %s", place)
		}
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		schema["enum"] = list
	}
	filled := *t
	filled.Parameters = document.AppendCanonical(nil, doc)
	params, problems := document.CompileParameters(filled.Parameters)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the parameters do not compile: %s", problems[0])
	}
	forms, err := FormsOf(filled.Parameters)
	if err != nil {
		return nil, err
	}
	compiled := *t.compiled
	compiled.Parameters = params
	filled.compiled, filled.Forms = &compiled, forms
	return &filled, nil
}

// sharedFillings returns the cache of the snapshot's fillings; nil if its tools aren't the loaded ones, or it is
// already filled.
func (s *Snapshot) sharedFillings() *kept[*Snapshot] {
	if s.loaded == nil || s.filled != "" {
		return nil
	}
	for id, t := range s.tools {
		if was := s.loaded.tools[id]; was == nil || was.compiled != t.compiled {
			return nil
		}
	}
	return s.loaded.fillings
}

func (s *stats) leaveOut(tool, source string, logger *slog.Logger) {
	key := tool + " " + source // bounded by the file
	if _, told := s.leftOut.LoadOrStore(key, true); !told {
		logger.LogAttrs(context.Background(), slog.LevelWarn, "a tool is left out of sessions for which its source of live values is empty",
			slog.String("tool", tool), slog.String("source", source))
	}
}

// kept is a cache of values shared by sessions. When full, it is cleared; sessions keep their values. The zero value
// is empty.
type kept[T any] struct {
	mu  sync.Mutex // guards all
	all map[string]T
}

// get returns the value of a key, which it makes if it is missing; the cache holds at most most values. Values made at
// the same time for one key are equal.
func (k *kept[T]) get(key string, most int, create func() T) T {
	k.mu.Lock()
	v, has := k.all[key]
	k.mu.Unlock()
	if has {
		return v
	}
	v = create()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= most {
		k.all = map[string]T{}
	}
	k.all[key] = v
	return v
}

// condition names the condition of an availability that doesn't hold; empty if all hold.
type condition string

// Conditions in the order of evaluation: byTime means that all others hold.
const (
	byAgent   condition = "agent"
	byScope   condition = "scope"
	byFeature condition = "feature"
	byTime    condition = "time"
)

func (t *Tool) lacks(s Session, feature func(agent, name string) bool) condition {
	a := t.Availability
	if a == nil {
		return ""
	}
	switch {
	case len(a.Agents) > 0 && !slices.Contains(a.Agents, s.Agent):
		return byAgent
	case len(a.Scopes) > 0 && !slices.ContainsFunc(a.Scopes, func(scope string) bool { return slices.Contains(s.Scopes, scope) }):
		return byScope
	case slices.ContainsFunc(a.Features, func(name string) bool { return feature == nil || !feature(s.Agent, name) }):
		return byFeature
	case len(a.Times) > 0 && !t.compiled.Open(s.Now):
		return byTime
	}
	return ""
}

// Available returns a snapshot of the same version without the tools that are unavailable to the session at its Now.
// Calls of tools that are only outside their times can still be prepared; [Prepared.Unavailable] refuses them with
// the next time. A nil snapshot stays nil.
func (s *Snapshot) Available(session Session) *Snapshot {
	if s == nil {
		return nil
	}
	why := map[*Tool]condition{}
	for _, t := range s.sorted {
		if lacks := t.lacks(session, s.opts.Feature); lacks != "" {
			why[t] = lacks
		}
	}
	if len(why) == 0 {
		return s
	}
	sub := s.having(func(t *Tool) bool { return why[t] == "" })
	for t, lacks := range why {
		if lacks == byTime && len(t.Dynamic) == 0 { // its enums are no longer filled
			if sub.closed == nil {
				sub.closed = map[string]*Tool{}
			}
			sub.closed[t.ToolID] = t
		}
	}
	return sub
}

// Unavailable returns the refusal if the call's tool is unavailable at the session's Now, otherwise nil. Tools that
// the session started without are always refused.
func (p *Prepared) Unavailable(s Session) *Envelope {
	lacks := p.tool.lacks(s, p.snapshot.opts.Feature)
	if lacks == "" && !p.closed {
		return nil
	}
	lacks = cmp.Or(lacks, byTime)
	told := NewError(ErrorUnavailable, prompts.NotAvailable(p.tool.ToolID))
	details := struct {
		Reason      condition `json:"reason"`
		AvailableAt string    `json:"available_at,omitempty"`
	}{Reason: lacks}
	if next := p.tool.compiled.Opens(s.Now); lacks == byTime && !next.IsZero() {
		when := next.Format("Mon 2 Jan 2006, 15:04") + " (" + next.Location().String() + ")"
		told = NewError(ErrorUnavailable, prompts.NotAvailableNow(p.tool.ToolID, when))
		details.AvailableAt, told.Retryable = next.UTC().Format(time.RFC3339), true
	}
	told.Details, _ = json.Marshal(details) // strings only: cannot fail
	env := p.Refuse(told)
	return &env
}

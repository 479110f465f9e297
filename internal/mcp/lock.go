package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Lock is a lock file: the approved tools by server and by the server's name of the tool.
type Lock struct {
	Servers map[string]map[string]*Pinned `json:"servers"`
}

// Pinned is an approved tool.
type Pinned struct {
	// Pin is the hash of Said, see [Said.Pin].
	Pin  string `json:"pin"`
	Said Said   `json:"said"`
	// Tool are the reviewer's decisions: keys of a schema.json, except those that Said decides.
	Tool map[string]json.RawMessage `json:"tool"`
}

// Said is a server's statement about a tool, unchanged.
type Said struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// Annotations are hints of the server. They are shown to the reviewer and decide nothing.
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

const (
	maxLock     = 8 << 20 // bytes
	lockDepth   = document.MaxSpecDepth + 8
	maxGuide    = 8000 // characters of a server's description
	versionForm = "1.0.0+"
)

// fromServer are the keys of a schema.json that the server decides, or that need code.
var fromServer = []string{"toolId", "version", "description", "parameters", "output", "settings", "dynamic", "variantOf", "job"}

// saidOf returns a server's statement about a tool.
func saidOf(t *sdk.Tool) (Said, error) {
	said := Said{Name: t.Name, Description: t.Description}
	var err error
	said.InputSchema, err = json.Marshal(t.InputSchema)
	if err == nil && t.Annotations != nil {
		said.Annotations, err = json.Marshal(t.Annotations)
	}
	if err != nil {
		return said, fmt.Errorf("the tool %s cannot be encoded: %w", t.Name, err)
	}
	return said, nil
}

// Pin returns the hash of the canonical JSON, which does not depend on white space and the order of keys.
func (s Said) Pin() (string, error) {
	data, err := document.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("the tool %s cannot be encoded: %w", s.Name, err)
	}
	v, problems, ok := document.Decode(data, maxLock, lockDepth)
	if !ok || len(problems) > 0 {
		return "", fmt.Errorf("the server's words about the tool %s cannot be used: %s", s.Name, problems[0])
	}
	sum := sha256.Sum256(document.AppendCanonical(nil, v))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// ParseLock reads a lock file. Each problem's path is a JSON Pointer into it.
func ParseLock(data []byte) (*Lock, []document.Problem) {
	_, problems, ok := document.Decode(data, maxLock, lockDepth)
	if !ok || len(problems) > 0 {
		return nil, problems
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var l Lock
	if err := d.Decode(&l); err != nil {
		return nil, []document.Problem{{Message: strings.TrimPrefix(err.Error(), "json: ") + "."}}
	}
	return &l, nil
}

// Encode returns the file's text.
func (l *Lock) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("the lock file cannot be written: %w", err)
	}
	return append(data, '\n'), nil
}

// Tool is a tool of a server, ready for the registry. It is immutable.
type Tool struct {
	Server string
	Pin    string
	Entry  registry.Entry
	// Losses are the parts of the server's schema that the tool's own schema does not express.
	Losses []string

	name string
	args *registry.Fitted
}

// Tools returns the tools of the lock file, sorted by id. A problem's path points into the file.
func (l *Lock) Tools() ([]*Tool, []document.Problem) {
	var all []*Tool
	var problems []document.Problem
	from := map[string]string{}
	for _, server := range slices.Sorted(maps.Keys(l.Servers)) {
		for _, name := range slices.Sorted(maps.Keys(l.Servers[server])) {
			at := document.Pointer{"servers", server, name}
			t, found := NewTool(server, name, l.Servers[server][name])
			problems = append(problems, document.Under(at, found)...)
			if t == nil {
				continue
			}
			if other := from[t.Entry.ToolID]; other != "" {
				problems = append(problems, document.Problem{Path: at.String(),
					Message: fmt.Sprintf("It would have the same id as %s: %s. Remove one of them.", other, t.Entry.ToolID)})
				continue
			}
			from[t.Entry.ToolID] = at.String()
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *Tool) int { return strings.Compare(a.Entry.ToolID, b.Entry.ToolID) })
	return all, problems
}

// NewTool makes a tool of a server from its row in a lock file; nil with problems.
func NewTool(server, name string, p *Pinned) (*Tool, []document.Problem) {
	bad := func(format string, args ...any) (*Tool, []document.Problem) {
		return nil, []document.Problem{{Message: fmt.Sprintf(format, args...)}}
	}
	if p == nil || p.Said.Name != name {
		return bad("said.name must be %q.", name)
	}
	pin, err := p.Said.Pin()
	switch {
	case err != nil:
		return bad("%v.", err)
	case pin != p.Pin:
		return bad("The pin does not fit \"said\", so someone has edited it; run voicegw mcp update %s.", server)
	}
	args, parameters, losses, err := registry.Fit(p.Said.InputSchema)
	if err != nil {
		return bad("The input schema cannot be used: %s. Remove the tool.", strings.TrimSuffix(err.Error(), "."))
	}
	about := strings.TrimSpace(document.CleanText(p.Said.Description))
	declared := map[string]any{
		"toolId": toolID(server, name), "version": versionForm + pin[len("sha256:"):][:12], "parameters": parameters,
		"description": document.Shorten(firstOf(about, "The tool "+name+" of the server "+server+"."), spec.MaxDescription-1),
	}
	for key, value := range p.Tool {
		if slices.Contains(fromServer, key) {
			return bad("tool has %q, which the server decides; remove it.", key)
		}
		declared[key] = value
	}
	text, err := document.Marshal(declared)
	if err != nil {
		return bad("%v.", err)
	}
	s, problems := spec.Parse(text)
	if len(problems) > 0 {
		return nil, document.Under(document.Pointer{"tool"}, problems)
	}
	forms, err := registry.FormsOf(s.Parameters)
	if err != nil {
		return bad("%v.", err)
	}
	return &Tool{Server: server, Pin: pin, Losses: losses, name: name, args: args, Entry: registry.Entry{
		Spec: s, Summary: document.Shorten(strings.Join(strings.Fields(s.Description), " "), spec.MaxSummary-1),
		Guide: guide(server, name, firstOf(about, s.Description), losses), Forms: forms, Handler: pin,
	}}, nil
}

func firstOf(text, otherwise string) string {
	if document.Wordless(text) {
		return otherwise
	}
	return text
}

func guide(server, name, about string, losses []string) string {
	text := fmt.Sprintf("# %s\n\nA tool of the server %s. It says:\n\n%s\n", name, server, document.Shorten(about, maxGuide))
	if len(losses) > 0 {
		text += "\n## Arguments\n\n- " + strings.Join(losses, "\n- ") + "\n"
	}
	return text
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// toolID returns the id of a server's tool: both names, with two underscores between them. A name that is too long is
// cut, with a part of its hash.
func toolID(server, name string) string {
	clean := func(s string) string { return strings.Trim(notInID.ReplaceAllString(strings.ToLower(s), "_"), "_") }
	id := clean(server) + "__" + firstOf(clean(name), "tool")
	if len(id) > spec.MaxToolID {
		sum := sha256.Sum256([]byte(name))
		id = strings.TrimRight(id[:spec.MaxToolID-7], "_") + "_" + hex.EncodeToString(sum[:3])
	}
	return id
}

// commands are signs that a description addresses the model instead of describing the tool.
var commands = regexp.MustCompile(`(?i)</?(important|system|instructions?|secret|assistant)\b|` +
	`\b(ignore|disregard|forget) (all|any|the|your|previous|prior|earlier)\b|\b(do not|don't|never) (tell|mention|inform|show)\b|` +
	`\bbefore (using|calling) (any|this|other)\b`)

// Doubts returns sentences about parts of a server's words that a reviewer should look at.
func (s Said) Doubts() []string {
	var doubts []string
	for where, text := range map[string]string{
		"the description": s.Description, "the schema": string(s.InputSchema), "the annotations": string(s.Annotations),
	} {
		if what, _ := document.Hidden(text); what != "" {
			doubts = append(doubts, fmt.Sprintf("%s has invisible text (%s); models do not get it", where, what))
		}
		if found := commands.FindString(text); found != "" {
			doubts = append(doubts, fmt.Sprintf("%s may give the model instructions: %q", where, found))
		}
	}
	slices.Sort(doubts)
	return doubts
}

// Differences returns the lines of two statements that differ, with a minus or a plus.
func Differences(old, now Said) []string {
	a, b := linesOf(old), linesOf(now)
	var all []string
	add := func(sign string, lines, others []string) {
		for _, line := range lines {
			if !slices.Contains(others, line) {
				all = append(all, sign+line)
			}
		}
	}
	add("- ", a, b)
	add("+ ", b, a)
	return all
}

func linesOf(s Said) []string {
	var lines []string
	for line := range strings.SplitSeq(s.Description, "\n") {
		lines = append(lines, "description: "+document.CleanText(line))
	}
	for _, part := range []struct {
		name string
		json json.RawMessage
	}{{"schema", s.InputSchema}, {"annotations", s.Annotations}} {
		var text bytes.Buffer
		_ = json.Indent(&text, part.json, "", "  ") // a server's annotations may be missing
		for line := range strings.Lines(text.String()) {
			lines = append(lines, part.name+": "+document.CleanText(strings.TrimSuffix(line, "\n")))
		}
	}
	return lines
}

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
	"voicegw/internal/textutil"
	"voicegw/registry/document"
)

// Draft is a document with its problems so far. It is not safe for concurrent use.
type Draft struct {
	r               *strict.Reader
	agent           Agent
	tools, switchTo []place
	voices          map[string]*yaml.Node
	provider, model *yaml.Node
}

type place struct {
	name string
	at   *yaml.Node
}

var keys = []string{
	"id", "name", "description", "playbook", "tools", "voices", "provider", "model", "language", "greeting", "notice", "budget",
	"switch_to", "enabled",
}

// Read reads JSON, if it begins with a brace, or YAML. name is the document's in problems.
func Read(name string, data []byte) *Draft {
	d := &Draft{r: strict.NewReader(name)}
	if len(data) > MaxBytes {
		d.r.Problem(nil, "the document has %d bytes; the maximum is %d", len(data), MaxBytes)
		return d
	}
	parse := d.r.Document
	if strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 1024)]), " \t\r\n"), "{") {
		parse = d.r.JSON
	}
	if top := parse(data); top != nil {
		if m, ok := d.r.Map(top, "the agent", keys...); ok {
			d.fields(m)
		}
	}
	return d
}

// Agent returns the readable part of the agent.
func (d *Draft) Agent() Agent { return d.agent }

// Problem records a problem of the whole document.
func (d *Draft) Problem(format string, args ...any) { d.r.Problem(nil, format, args...) }

func (d *Draft) fields(m strict.Map) {
	a := &d.agent
	a.ID = d.id(m)
	a.Name = d.needed(m, "name", MaxName)
	a.Description = d.line(m, "description", MaxDescription)
	a.Playbook = d.playbook(m)
	if n := m.Get("tools"); n != nil {
		d.tools = d.names(n, "tools", MaxTools)
		a.Tools = []string{}
		for _, t := range d.tools {
			a.Tools = append(a.Tools, t.name)
		}
	}
	d.readVoices(m.Get("voices"))
	d.provider = m.Get("provider")
	a.Provider = d.line(m, "provider", MaxName)
	d.model = m.Get("model")
	a.Model = d.line(m, "model", 2*MaxName)
	if n := d.model; a.Model != "" && !m.Has("provider") {
		d.r.Problem(n, "model needs provider; add provider")
	}
	if a.Language = d.line(m, "language", 35); a.Language != "" && !languageForm.MatchString(a.Language) {
		d.r.Problem(m.Get("language"), "language must be a BCP 47 tag such as de or en-US, not %q", a.Language)
	}
	a.Greeting = d.text(m, "greeting", MaxGreeting)
	a.Notice = d.text(m, "notice", MaxNotice)
	d.budgets(m.Get("budget"))
	if n := m.Get("switch_to"); n != nil {
		d.switchTo = d.names(n, "switch_to", MaxSwitchTo)
		for _, s := range d.switchTo {
			a.SwitchTo = append(a.SwitchTo, s.name)
		}
	}
	if on, ok := d.r.Bool(m.Get("enabled"), "enabled"); ok {
		a.Disabled = !on
	}
}

func (d *Draft) id(m strict.Map) string {
	n := m.Get("id")
	if n == nil {
		d.r.Problem(m.Node, "the agent has no id; give it one, such as id: billing")
		return ""
	}
	id, ok := d.r.Text(n, "id")
	if ok && !ValidID(id) {
		d.r.Problem(n, "id must be 1 to %d lower-case letters, digits, - and _, beginning with a letter or digit, not %s",
			MaxID, strict.Kind(n))
		return ""
	}
	return id
}

func (d *Draft) needed(m strict.Map, key string, most int) string {
	n := m.Get(key)
	if n == nil {
		d.r.Problem(m.Node, "the agent has no %s", key)
		return ""
	}
	text := d.line(m, key, most)
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" && strings.TrimSpace(n.Value) == "" {
		d.r.Problem(n, "%s is empty", key)
	}
	return text
}

func (d *Draft) line(m strict.Map, key string, most int) string {
	text := d.text(m, key, most)
	if strings.ContainsAny(text, "\n\t") {
		d.r.Problem(m.Get(key), "%s must be one line", key)
	}
	return strings.TrimSpace(text)
}

func (d *Draft) text(m strict.Map, key string, most int) string {
	n := m.Get(key)
	text, ok := d.r.Text(n, key)
	if !ok {
		return ""
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if c := utf8.RuneCountInString(text); c > most {
		d.r.Problem(n, "%s has %d characters; the maximum is %d", key, c, most)
	}
	d.legible(n, key, text)
	return strings.TrimSpace(text)
}

func (d *Draft) legible(n *yaml.Node, key, text string) {
	if what, _ := document.Hidden(text); what != "" {
		d.r.Problem(n, "%s has the invisible character %s; remove it", key, what)
	}
}

func (d *Draft) playbook(m strict.Map) string {
	n := m.Get("playbook")
	if n == nil {
		d.r.Problem(m.Node, "the agent has no playbook; add one with the agent's identity and task")
		return ""
	}
	text, ok := d.r.Text(n, "playbook")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		d.r.Problem(n, "playbook is empty")
	case len(text) > MaxPlaybook:
		d.r.Problem(n, "playbook has %d bytes; the maximum is %d; move reference material to the knowledge base", len(text), MaxPlaybook)
	}
	d.legible(n, "playbook", text)
	return strings.TrimSpace(text)
}

func (d *Draft) names(n *yaml.Node, what string, most int) []place {
	if n.Kind != yaml.SequenceNode {
		d.r.Problem(n, "%s must be a list, such as [a, b], not %s", what, strict.Kind(n))
		return nil
	}
	if len(n.Content) > most {
		d.r.Problem(n, "%s has %d entries; the maximum is %d", what, len(n.Content), most)
		return nil
	}
	var list []place
	for _, c := range n.Content {
		name, ok := d.r.Text(c, "an entry of "+what)
		switch {
		case !ok:
		case slices.ContainsFunc(list, func(p place) bool { return p.name == name }):
			d.r.Problem(c, "%s has %q twice", what, clip(name))
		default:
			list = append(list, place{name, c})
		}
	}
	return list
}

func (d *Draft) readVoices(n *yaml.Node) {
	m, _ := d.r.Map(n, "voices")
	d.voices = map[string]*yaml.Node{}
	for _, provider := range m.Keys() {
		at := m.Get(provider)
		if voice, ok := d.r.Text(at, "voices."+clip(provider)); ok {
			if d.agent.Voices == nil {
				d.agent.Voices = map[string]string{}
			}
			d.agent.Voices[provider], d.voices[provider] = voice, at
		}
	}
}

func (d *Draft) budgets(n *yaml.Node) {
	m, _ := d.r.Map(n, "budget", "voice", "text")
	d.budget(m.Get("voice"), "budget.voice", &d.agent.Budget.Voice)
	d.budget(m.Get("text"), "budget.text", &d.agent.Budget.Text)
}

func (d *Draft) budget(n *yaml.Node, what string, b *Budget) {
	m, _ := d.r.Map(n, what, "retrieval", "total", "top_k", "tool_time")
	b.Retrieval, _ = d.r.Int(m.Get("retrieval"), what+".retrieval", 0, maxCalls)
	b.Total, _ = d.r.Int(m.Get("total"), what+".total", 0, maxCalls)
	b.TopK, _ = d.r.Int(m.Get("top_k"), what+".top_k", 0, maxCalls)
	t, _ := d.r.Duration(m.Get("tool_time"), what+".tool_time", maxToolTime)
	b.ToolTime = Duration(t.Round(time.Millisecond))
}

func clip(s string) string { return textutil.Shorten(s, 80) }

func quoted(names []string, most int) string {
	if len(names) <= most {
		return strict.Join(names)
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// MaxAgents bounds a gateway's agents: in its folder, and in its store.
const MaxAgents = 10_000

// Load reads ID.yaml files, sorted by ID, which may refer to each other and to w. The error joins *strict.Errors.
func Load(folder fs.FS, w World) ([]Agent, error) {
	names, err := files(folder)
	if err != nil {
		return nil, err
	}
	drafts := make([]*Draft, 0, len(names))
	known := slices.Clone(w.Agents)
	for _, name := range names {
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("agent: reading the agents: %w", err)
		}
		d := Read(name, data)
		id := strings.TrimSuffix(name, ".yaml")
		switch has := d.agent.ID; {
		case !ValidID(id):
			d.Problem("the file's name must be a valid agent id: lower-case letters, digits, - and _")
		case has != "" && has != id:
			d.Problem("the file has the agent %q; rename it to %s.yaml, or change the id to %s", has, has, id)
		}
		drafts, known = append(drafts, d), append(known, id)
	}
	slices.Sort(known)
	w.Agents = slices.Compact(known)
	w = w.Indexed()
	all := make([]Agent, 0, len(drafts))
	var problems []error
	for _, d := range drafts {
		a, err := d.Check(w)
		problems = append(problems, err)
		all = append(all, a)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return all, nil
}

func files(folder fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("agent: reading the agents: %w", err)
	}
	var names []string
	for _, e := range entries {
		switch ext := path.Ext(e.Name()); {
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
		case ext == ".yml" || ext == ".json":
			return nil, fmt.Errorf("agent: %s is not an agent: agent files end with .yaml; rename or move it", e.Name())
		case ext == ".yaml":
			names = append(names, e.Name())
		}
	}
	if len(names) > MaxAgents {
		return nil, fmt.Errorf("agent: the folder has %d agents; the maximum is %d", len(names), MaxAgents)
	}
	slices.Sort(names)
	return names, nil
}

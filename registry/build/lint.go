package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/registry"
	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

type linter struct {
	module   string            // the project's module path
	twins    map[string]string // ids that are too similar to an earlier one
	tool     string            // the tool that is being checked
	beside   []*version
	findings []Finding
}

// tool is the result for a directory without errors.
type tool struct {
	name    string
	entry   registry.Entry
	args    []byte // the required zz_args.go
	current []byte // the current zz_args.go
	has     functions
	output  []byte // the output schema in OpenAI's form; may be empty
}

func (t *tool) bare() bool { return len(t.entry.Forms.OpenAI) > 0 && len(t.entry.Forms.Gemini) == 0 }

func (l *linter) add(file string, line int, pointer, rule, format string, args ...any) {
	l.report(SeverityError, file, line, pointer, rule, fmt.Sprintf(format, args...))
}

func (l *linter) warn(file string, line int, pointer, rule, format string, args ...any) {
	l.report(SeverityWarning, file, line, pointer, rule, fmt.Sprintf(format, args...))
}

func (l *linter) report(severity Severity, file string, line int, pointer, rule, message string) {
	if strings.HasSuffix(message, "?.") {
		message = strings.TrimSuffix(message, ".")
	}
	l.findings = append(l.findings, Finding{
		Severity: severity, Tool: l.tool, File: file, Line: line, Path: pointer, Rule: rule, Message: message, Link: Docs + "#" + rule,
	})
}

func (l *linter) errors() int { return (&Report{Findings: l.findings}).Errors() }

// check checks a directory. It returns nil after errors.
func (l *linter) check(root fs.FS, name string) *tool {
	l.tool = name
	defer func() { l.tool = "" }()
	before := l.errors()
	s := l.read(root, name)
	t := &tool{name: name, current: s.args}
	var parameters *node // only if reliable
	if s.schema != nil {
		parameters = l.schema(s, t)
	}
	if s.guide != nil {
		l.guide(s, t, parameters)
	}
	t.has = l.handler(s, &t.entry.Spec)
	t.entry.Handler = s.handlerHash()
	if parameters != nil && s.named {
		var err error
		if t.args, err = argsSource(packageName(name), bindings{
			parameters: t.entry.Forms.OpenAI, output: t.output, named: s.names(outputType), module: l.module,
			id: t.entry.ToolID, settings: t.entry.Settings,
		}); err != nil {
			l.add(s.file(schemaFile), parameters.line, "/parameters", "parameters", "%v.", err)
		}
	}
	if l.errors() > before {
		return nil
	}
	return t
}

func (l *linter) schema(s *source, t *tool) *node {
	file := s.file(schemaFile)
	tree, err := parseJSON(s.schema)
	if err != nil {
		line := 0
		if se, ok := errors.AsType[*syntaxError](err); ok {
			line, err = se.line, errors.New(se.text)
		}
		l.add(file, line, "", ruleSchema, "%s", sentence(err.Error()))
		return nil
	}
	declared, problems := spec.Parse(s.schema)
	t.entry.Spec = declared
	usable := true
	for _, p := range problems {
		line := tree.lineOf(p.Path)
		if at := document.LoneSurrogate(s.schema); at >= 0 && p.Path == "" {
			line = lineAt(s.schema, at)
		}
		l.add(file, line, p.Path, ruleOf(p.Path), "%s", p.Message)
		usable = usable && p.Path != "" && !strings.HasPrefix(p.Path, "/parameters")
	}
	l.fields(s, tree, &declared)
	if declared.VariantOf != "" && len(problems) == 0 {
		l.beside = append(l.beside, &version{folder: s.name, file: file, tree: tree, spec: declared})
	}
	l.output(file, tree, t, problems)
	l.wording(file, tree)
	if len(declared.Parameters) == 0 {
		return nil // the file isn't an object
	}
	parameters := tree.get("parameters")
	if parameters == nil || parameters.kind == kindObject && len(parameters.members) == 0 {
		if parameters, err = parseJSON(declared.Parameters); err != nil { // built-in schema
			l.add(file, tree.line, "/parameters", ruleParameters, "%v.", err)
			return nil
		}
	}
	if parameters.kind != kindObject {
		return nil
	}
	l.preview(file, tree)
	if !usable || !l.forms(file, tree, t) || !l.bounds(file, tree, "/parameters", declared.Parameters) {
		return nil
	}
	return parameters
}

// fields checks what spec.Parse cannot know, except the parameters.
func (l *linter) fields(s *source, tree *node, declared *spec.Spec) {
	file := s.file(schemaFile)
	if want := toolID(s.name); s.named && declared.ToolID != "" && declared.ToolID != want {
		l.add(file, tree.lineOf("/toolId"), "/toolId", "toolid",
			"The toolId is %q and must be %q: the directory's name with underscores for dashes.", declared.ToolID, want)
	}
	if twin, has := l.twins[toolID(s.name)]; has && s.named {
		l.add(file, tree.lineOf("/toolId"), "/toolId", "toolid",
			"The tools %q and %q differ in underscores alone, so a model would take one for the other; rename one.", toolID(s.name), twin)
	}
	if list := tree.get("requires"); list != nil {
		for i, scope := range list.items {
			if slices.Contains(declared.Requires, scope.text) && !strings.ContainsAny(scope.text, ".:/") {
				l.warn(file, scope.line, fmt.Sprintf("/requires/%d", i), "requires",
					"No key and no token can have the scope %q for tools, only a trusted server can grant it: a word alone "+
						"names what a key opens. Write . : or / in it, such as \"calendar.write\".", scope.text)
			}
		}
	}
	if declared.Category == spec.CategoryAction && declared.SideEffects == spec.SideEffectsWrites && !declared.RequiresConfirmation {
		l.warn(file, tree.lineOf("/requiresConfirmation"), "/requiresConfirmation", ruleWrites,
			"This action writes, and no person is asked before it runs. Set requiresConfirmation to true unless a wrong call does no harm.")
	}
}

func (l *linter) bounds(file string, tree *node, field string, schema json.RawMessage) bool {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return true // already reported
	}
	found := len(l.findings)
	l.boundsOf(file, tree, field, doc)
	return len(l.findings) == found
}

var boundPairs = [][2]string{{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"},
	{"minimum", "maximum"}}

func (l *linter) boundsOf(file string, tree *node, at string, schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		for _, pair := range boundPairs {
			least, hasLeast := schema[pair[0]].(float64)
			most, hasMost := schema[pair[1]].(float64)
			if hasLeast && hasMost && least > most {
				l.add(file, tree.lineOf(at+"/"+pair[0]), at+"/"+pair[0], ruleOf(at),
					"No value is valid: %s is %v and %s is %v.", pair[0], least, pair[1], most)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(schema)) {
			switch key {
			case "enum", "const", "default", "examples": // values, not schemas
			default:
				l.boundsOf(file, tree, at+document.Pointer([]string{key}).String(), schema[key])
			}
		}
	case []any:
		for i, item := range schema {
			l.boundsOf(file, tree, fmt.Sprintf("%s/%d", at, i), item)
		}
	}
}

func (l *linter) forms(file string, tree *node, t *tool) bool {
	var err error
	if t.entry.Forms, err = registry.FormsOf(t.entry.Spec.Parameters); err == nil {
		return true
	}
	var problems adapter.Problems
	if !errors.As(err, &problems) {
		l.add(file, tree.lineOf("/parameters"), "/parameters", ruleForms, "%v.", err)
		return false
	}
	for _, p := range problems {
		pointer := "/parameters" + p.Path
		if p.Keyword != "" && tree.at(pointer+"/"+p.Keyword) != nil {
			pointer += "/" + p.Keyword
		}
		l.add(file, tree.lineOf(pointer), pointer, ruleForms, "%s", sentence(p.Message))
	}
	return false
}

func (l *linter) guide(s *source, t *tool, parameters *node) {
	file, text := s.file(guideFile), string(s.guide)
	g := parseGuide(text)
	t.entry.Summary, t.entry.Guide = g.summary, text
	if want := cmp.Or(t.entry.VariantOf, toolID(s.name)); s.named && g.title != want { // a model reads it
		l.add(file, max(1, g.titleLine), "", ruleGuide, "The guide must begin with the heading \"# %s\".", want)
	}
	switch n := utf8.RuneCountInString(g.summary); {
	case n == 0:
		l.add(file, max(1, g.titleLine), "", ruleSummary,
			"The summary is missing: the first line below the title, which tells a model when to use the tool.")
	case n > spec.MaxSummary:
		l.add(file, g.summaryLine, "", ruleSummary,
			"The summary has %d characters, and at most %d stand in a prompt. Shorten it; the rest belongs below it.", n, spec.MaxSummary)
	case g.continues:
		l.warn(file, g.summaryLine, "", ruleSummary,
			"The summary's paragraph goes on in a second line, which does not stand in a prompt. Join the lines, or put a "+
				"blank one between them.")
	}
	if g.unclosed > 0 {
		l.add(file, g.unclosed, "", ruleGuide, "The block of code that begins here does not end; close it with its fence.")
	}
	bare := t.bare()
	for _, heading := range [...]string{"Parameters", "Examples"} {
		switch g.count(heading) {
		case 0:
			if bare {
				continue // nothing to describe, and only one call
			}
			l.add(file, 0, "", ruleGuide, "The section \"## %s\" is missing.", heading)
		case 1:
		default:
			l.add(file, g.section(heading).line, "", ruleGuide, "The section \"## %s\" is there more than once; join them.", heading)
		}
	}
	l.legible(file, text)
	if document.Wordless(g.summary) && g.summary != "" {
		l.add(file, g.summaryLine, "", ruleSummary,
			"The summary holds no word but markup, and it is all that a prompt has of the tool. Write a sentence.")
	}
	l.mentions(file, g.section("Parameters"), parameters)
	if examples := g.section("Examples"); examples != nil {
		l.examples(file, examples, t, parameters != nil)
	}
}

func (l *linter) mentions(file string, s *section, parameters *node) {
	if s == nil || parameters == nil {
		return
	}
	for _, p := range membersOf(parameters.get("properties")) {
		if !speaksOf(s.text, p.key) {
			l.warn(file, s.line, "", ruleGuide, "The section \"## Parameters\" does not speak of %s.", p.key)
		}
	}
}

func (l *linter) examples(file string, s *section, t *tool, usable bool) {
	var checker *exampleChecker
	if usable {
		var err error
		if checker, err = newExampleChecker(t); err != nil {
			l.add(file, s.line, "", ruleExamples, "The examples cannot be checked: %v.", err)
		}
	}
	n := 0
	for _, b := range s.blocks {
		kind, rest, _ := strings.Cut(b.info, " ")
		if kind != "" && kind != "json" {
			continue
		}
		if strings.TrimSpace(rest) == "result" {
			if _, err := parseJSON([]byte(b.text)); err != nil {
				l.exampleSyntax(file, b, err)
			}
			continue
		}
		n++
		if at := document.LoneSurrogate([]byte(b.text)); at >= 0 {
			l.add(file, b.line+strings.Count(b.text[:at], "\n"), "", ruleExamples,
				"The escape %s is half of a character (a lone surrogate). Write the whole pair, or the character itself.",
				b.text[at:min(at+6, len(b.text))])
			continue
		}
		tree, err := parseJSON([]byte(b.text))
		if err != nil {
			l.exampleSyntax(file, b, err)
			continue
		}
		if checker == nil {
			continue
		}
		for _, p := range checker.check(json.RawMessage(b.text)) {
			l.add(file, b.line+tree.lineOf(p.Path)-1, p.Path, ruleExamples, "The example does not fit the parameters: %s.",
				strings.TrimSuffix(p.Message, "."))
		}
	}
	if n == 0 && !t.bare() {
		l.add(file, s.line, "", ruleExamples,
			"There is no example. Write the arguments of a call as an object in a block fenced with ```json.")
	}
}

func (l *linter) exampleSyntax(file string, b block, err error) {
	line, text := b.line, err.Error()
	if se, ok := errors.AsType[*syntaxError](err); ok {
		line, text = b.line+se.line-1, se.text
	}
	l.add(file, line, "", ruleExamples, "The example is not valid JSON: %s", strings.TrimPrefix(sentence(text), "This is not valid JSON: "))
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

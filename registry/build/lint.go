package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"voicegw/registry"
	"voicegw/registry/adapter"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

type linter struct {
	base     string            // the directory of the tools
	foreign  []string          // the names of handlers that are not Go code; empty for tools in Go
	module   string            // the project's module path
	twins    map[string]string // ids that are too similar to an earlier one
	tool     string            // the tool that is being checked
	versions []*version
	findings []Finding
}

type tool struct {
	name    string
	entry   registry.Entry
	args    []byte // the required zz_args.go
	current []byte // the current zz_args.go, or the foreign handler
	kind    string // the name of the handler's file
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

func (l *linter) check(root fs.FS, name string) *tool {
	l.tool = name
	defer func() { l.tool = "" }()
	before := l.errors()
	s := l.read(root, name)
	t := &tool{name: name, current: s.args, kind: s.kind}
	var parameters *document.Schema // only if reliable
	if s.schema != nil {
		parameters = l.schema(s, t)
	}
	if s.guide != nil {
		l.guide(s, t, parameters)
	}
	if t.entry.Network != nil && s.kind != "" && s.kind != networkFile {
		l.add(s.file(schemaFile), lineOf(s.schema, "/network"), "/network", ruleOf("/network"),
			"Only a handler in JavaScript (%s) uses \"network\"; remove it.", networkFile)
	}
	t.entry.Handler = s.handlerHash(s.kind)
	if l.foreign != nil {
		t.current = s.handler
		if l.errors() > before {
			return nil
		}
		return t
	}
	t.has = l.handler(s, &t.entry.Spec)
	if parameters != nil && s.named {
		var err error
		if t.args, err = argsSource(packageName(name), bindings{
			parameters: t.entry.Forms.OpenAI, output: t.output, named: s.names(outputType), module: l.module,
			id: t.entry.ToolID, settings: t.entry.Settings,
		}); err != nil {
			l.add(s.file(schemaFile), lineOf(s.schema, "/parameters"), "/parameters", "parameters", "%v.", err)
		}
	}
	if l.errors() > before {
		return nil
	}
	return t
}

// text is a JSON file with its decoded value.
type text struct {
	file string
	data []byte
	doc  any
}

func (l *linter) addAt(t *text, pointer, rule, format string, args ...any) {
	l.add(t.file, lineOf(t.data, pointer), pointer, rule, format, args...)
}

func (l *linter) warnAt(t *text, pointer, rule, format string, args ...any) {
	l.warn(t.file, lineOf(t.data, pointer), pointer, rule, format, args...)
}

func (l *linter) schema(s *source, t *tool) *document.Schema {
	file := &text{file: s.file(schemaFile), data: s.schema}
	if line, problem := syntaxProblem(s.schema); problem != "" {
		l.add(file.file, line, "", ruleSchema, "%s", sentence(problem))
		return nil
	}
	file.doc, _, _ = document.Decode(s.schema, maxSchema, document.MaxSpecDepth)
	declared, problems := spec.Parse(s.schema)
	t.entry.Spec = declared
	usable := true
	for _, p := range problems {
		line := lineOf(s.schema, p.Path)
		if at := document.LoneSurrogate(s.schema); at >= 0 && p.Path == "" {
			line = lineAt(s.schema, at)
		}
		l.add(file.file, line, p.Path, ruleOf(p.Path), "%s", p.Message)
		usable = usable && p.Path != "" && !strings.HasPrefix(p.Path, "/parameters")
	}
	l.fields(s, file, &declared)
	if declared.VariantOf != "" && len(problems) == 0 {
		l.versions = append(l.versions, &version{folder: s.name, text: file, spec: declared})
	}
	l.output(file, t, problems)
	l.wording(file)
	l.preview(file)
	if !usable || len(declared.Parameters) == 0 {
		return nil
	}
	var err error
	t.entry.Forms, err = registry.FormsOf(declared.Parameters)
	if l.refused(file, "/parameters", ruleForms, "", err) || !l.bounds(file, "/parameters", declared.Parameters) {
		return nil
	}
	parameters, _ := document.CompileParameters(declared.Parameters) // spec.Parse has reported problems
	return parameters
}

func (l *linter) fields(s *source, file *text, declared *spec.Spec) {
	if want := toolID(s.name); s.named && declared.ToolID != "" && declared.ToolID != want {
		l.addAt(file, "/toolId", "toolid",
			"The toolId is %q and must be %q: the directory's name with underscores for dashes.", declared.ToolID, want)
	}
	if twin, has := l.twins[toolID(s.name)]; has && s.named {
		l.addAt(file, "/toolId", "toolid",
			"The tools %q and %q differ only in underscores, so a model could confuse them; rename one.", toolID(s.name), twin)
	}
	for i, scope := range declared.Requires {
		if scope != "" && !strings.ContainsAny(scope, ".:/") {
			l.warnAt(file, fmt.Sprintf("/requires/%d", i), "requires",
				"Keys and tokens cannot have the scope %q: only scopes with . : or / are for tools, and single words are for "+
					"endpoints. Name it, for example, \"calendar.write\".", scope)
		}
	}
	if declared.Category == spec.CategoryAction && declared.Writes() && !declared.RequiresConfirmation {
		l.warnAt(file, "/requiresConfirmation", ruleWrites,
			"This action writes without a person's approval. Set requiresConfirmation to true, unless a wrong call does no harm.")
	}
}

func (l *linter) output(file *text, t *tool, problems []document.Problem) {
	const field = "/output"
	if len(t.entry.Output) == 0 || slices.ContainsFunc(problems, func(p document.Problem) bool {
		return p.Path == "" || p.Path == field || strings.HasPrefix(p.Path, field+"/")
	}) {
		return
	}
	form, err := adapter.OpenAIParameters(t.entry.Output)
	const why = "This has no Go type, for the reason that would exclude it from parameters: "
	if !l.refused(file, field, ruleOf(field), why, err) && l.bounds(file, field, t.entry.Output) {
		t.output = form
	}
}

func (l *linter) refused(file *text, field, rule, why string, err error) bool {
	problems, ok := errors.AsType[adapter.Problems](err)
	if !ok && err != nil {
		problems = adapter.Problems{{Message: err.Error()}}
	}
	for _, p := range problems {
		pointer := field + p.Path
		if place, _ := document.ParsePointer(pointer + "/" + p.Keyword); p.Keyword != "" {
			if _, has := document.At(file.doc, place); has {
				pointer += "/" + p.Keyword
			}
		}
		l.addAt(file, pointer, rule, "%s%s", why, sentence(p.Message))
	}
	return err != nil
}

func (l *linter) bounds(file *text, field string, schema json.RawMessage) bool {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return true // already reported
	}
	found := len(l.findings)
	l.boundsOf(file, field, doc)
	return len(l.findings) == found
}

var boundPairs = [][2]string{{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"},
	{"minimum", "maximum"}}

func (l *linter) boundsOf(file *text, at string, schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		for _, pair := range boundPairs {
			least, hasLeast := schema[pair[0]].(float64)
			most, hasMost := schema[pair[1]].(float64)
			if hasLeast && hasMost && least > most {
				l.addAt(file, at+"/"+pair[0], ruleOf(at),
					"No value is valid: %s is %v and %s is %v.", pair[0], least, pair[1], most)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(schema)) {
			switch key {
			case "enum", "const", "default", "examples": // values, not schemas
			default:
				l.boundsOf(file, at+document.Pointer([]string{key}).String(), schema[key])
			}
		}
	case []any:
		for i, item := range schema {
			l.boundsOf(file, fmt.Sprintf("%s/%d", at, i), item)
		}
	}
}

func (l *linter) guide(s *source, t *tool, parameters *document.Schema) {
	file, text := s.file(guideFile), string(s.guide)
	g := parseGuide(text)
	t.entry.Summary, t.entry.Guide = g.summary, text
	if want := cmp.Or(t.entry.VariantOf, toolID(s.name)); s.named && g.title != want { // a model reads it
		l.add(file, max(1, g.titleLine), "", ruleGuide, "The guide must begin with the heading \"# %s\".", want)
	}
	switch n := utf8.RuneCountInString(g.summary); {
	case n == 0:
		l.add(file, max(1, g.titleLine), "", ruleSummary,
			"The summary is missing. It is the first line below the title and tells a model when to use the tool.")
	case n > spec.MaxSummary:
		l.add(file, g.summaryLine, "", ruleSummary,
			"The summary has %d characters, but prompts have room for %d. Shorten it, and move the rest below it.", n, spec.MaxSummary)
	case g.continues:
		l.warn(file, g.summaryLine, "", ruleSummary,
			"The summary's paragraph has a second line, which prompts leave out. Join the lines, or separate them by a blank line.")
	}
	if g.unclosed > 0 {
		l.add(file, g.unclosed, "", ruleGuide, "The code block that begins here has no end; add the closing fence.")
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
			l.add(file, g.section(heading).line, "", ruleGuide, "The section \"## %s\" appears more than once; join them.", heading)
		}
	}
	l.legible(file, text)
	if document.Wordless(g.summary) && g.summary != "" {
		l.add(file, g.summaryLine, "", ruleSummary,
			"The summary has markup but no words, and prompts describe the tool by it alone. Write a sentence.")
	}
	l.mentions(file, g.section("Parameters"), parameters)
	if examples := g.section("Examples"); examples != nil {
		l.examples(file, examples, t, parameters)
	}
}

func (l *linter) mentions(file string, s *section, parameters *document.Schema) {
	if s == nil || parameters == nil {
		return
	}
	for _, name := range parameters.Root.Names {
		if !speaksOf(s.text, name) {
			l.warn(file, s.line, "", ruleGuide, "The section \"## Parameters\" does not mention %s.", name)
		}
	}
}

// examples checks the JSON blocks, which contain arguments of calls. parameters may be nil.
func (l *linter) examples(file string, s *section, t *tool, parameters *document.Schema) {
	n := 0
	for _, b := range s.blocks {
		kind, rest, _ := strings.Cut(b.info, " ")
		if kind != "" && kind != "json" {
			continue
		}
		if strings.TrimSpace(rest) == "result" {
			l.exampleSyntax(file, b)
			continue
		}
		n++
		text := []byte(b.text)
		if at := document.LoneSurrogate(text); at >= 0 {
			l.add(file, b.line+strings.Count(b.text[:at], "\n"), "", ruleExamples,
				"The escape %s is half of a character (a lone surrogate). Write the whole pair, or the character itself.",
				b.text[at:min(at+6, len(b.text))])
			continue
		}
		if !l.exampleSyntax(file, b) || parameters == nil {
			continue
		}
		for _, p := range exampleProblems(parameters, text) {
			l.add(file, b.line+lineOf(text, p.Path)-1, p.Path, ruleExamples, "The example does not fit the parameters: %s.",
				strings.TrimSuffix(p.Message, "."))
		}
	}
	if n == 0 && !t.bare() {
		l.add(file, s.line, "", ruleExamples,
			"There is no example. Write the arguments of a call as an object in a block fenced with ```json.")
	}
}

// exampleProblems returns the reasons to reject a call with these arguments; an example must be complete.
func exampleProblems(parameters *document.Schema, text []byte) []document.Problem {
	v, problems, _ := document.Decode(text, document.MaxArgsBytes, document.MaxArgsDepth)
	object, ok := v.(map[string]any)
	switch {
	case len(problems) > 0:
		return problems
	case !ok:
		return []document.Problem{{Message: "must be an object with the arguments by name, got " + document.Describe(v)}}
	}
	parameters.Complete(object)
	problems = parameters.Validate(object)
	return problems[:min(len(problems), document.MaxProblems)]
}

func (l *linter) exampleSyntax(file string, b block) bool {
	line, problem := syntaxProblem([]byte(b.text))
	if problem != "" {
		l.add(file, b.line+line-1, "", ruleExamples, "The example is not valid JSON: %s",
			strings.TrimPrefix(sentence(problem), "This is not valid JSON: "))
	}
	return problem == ""
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

type version struct {
	folder string
	text   *text
	spec   spec.Spec
}

func (l *linter) agree(root fs.FS) {
	byVersion := map[string]string{} // of the tool and its version, the folder
	for _, v := range l.versions {
		l.tool = v.folder
		of := v.spec.VariantOf
		main := strings.ReplaceAll(of, "_", "-")
		text, err := fs.ReadFile(root, path.Join(l.base, main, schemaFile))
		if err != nil {
			names, _ := l.names(root) // without a folder there are no suggestions
			l.addAt(v.text, "/variantOf", ruleVariant,
				"This is a version of %s, but there is no such tool%s.", document.Show(of), document.DidYouMean(of, toolIDs(names)))
			continue
		}
		declared, problems := spec.Parse(text)
		if len(problems) > 0 {
			continue // its own check reports them
		}
		for _, p := range spec.Disagreements(&declared, &v.spec) {
			l.addAt(v.text, p.Path, ruleVariant, "%s", p.Message)
		}
		if other, twice := byVersion[of+" "+v.spec.Version]; twice {
			l.addAt(v.text, "/version", ruleVariant,
				"The version %s is also that of %s; the audit tells versions apart by it.", v.spec.Version, other)
		}
		byVersion[of+" "+v.spec.Version] = v.folder
	}
	l.tool, l.versions = "", nil
}

var placeholder = regexp.MustCompile(`\b(TODO|FIXME|XXX|TBD)\b`)

const scaffolded = "TODO: do the work. Until then"

// legible rejects invisible characters in the guide, and warns of placeholders. read has already reported control
// characters and line ends.
func (l *linter) legible(file, text string) {
	line := 0
	for s := range strings.Lines(text) {
		line++
		told := func(r rune) rune { // reported by read
			if isControl(r) || r == '\r' {
				return -1
			}
			return r
		}
		if what, _ := document.Hidden(strings.Map(told, s)); what != "" {
			l.add(file, line, "", ruleFiles, "The line has the character %s, which people cannot see but models read. Remove it.", what)
		}
		if found := placeholder.FindString(s); found != "" {
			l.warn(file, line, "", ruleGuide, "The line still has %s, which models read. Replace it.", found)
		}
	}
}

func (l *linter) wording(file *text) {
	var walk func(v any, at document.Pointer, data bool)
	walk = func(v any, at document.Pointer, data bool) {
		pointer := at.String()
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				place := at.With(key)
				inData := data || slices.Contains([]string{"default", "examples", "enum", "const"}, key) || strings.HasPrefix(key, "x-")
				words, isText := value.(string)
				if isText && strings.HasPrefix(pointer, "/parameters") && !data && (key == "description" || key == "title") &&
					document.Wordless(words) {
					l.warnAt(file, place.String(), ruleOf(pointer),
						"The %s has no words, so it tells a model nothing. Write some, or remove it.", key)
				}
				walk(value, place, inData)
			}
		case []any:
			for i, item := range v {
				walk(item, at.Index(i), data)
			}
		case string:
			if found := placeholder.FindString(v); found != "" && !strings.HasSuffix(pointer, "/$comment") {
				l.warnAt(file, pointer, ruleOf(pointer), "The text still has %s, which models read. Replace it.", found)
			}
		}
	}
	walk(file.doc, nil, false)
}

func (l *linter) preview(file *text) {
	object, _ := file.doc.(map[string]any)
	preview, _ := object["preview"].(string)
	properties, _ := document.At(object["parameters"], document.Pointer{"properties"})
	if named, _ := properties.(map[string]any); preview == "" || len(named) == 0 {
		return
	}
	if !strings.Contains(strings.NewReplacer("{{", "", "}}", "").Replace(preview), "{") {
		l.warnAt(file, "/preview", "preview",
			"The preview names no argument, so the person who approves a call does not see its effect. Write {name} for an argument.")
	}
}

func speaksOf(text, name string) bool {
	const border = `[^_\pL\p{Nd}]`
	return name != "" && regexp.MustCompile(`(?:^|`+border+`)`+regexp.QuoteMeta(name)+`(?:$|`+border+`)`).MatchString(text)
}

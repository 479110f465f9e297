package build

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Severity is a finding's severity.
type Severity string

// Severities. Warnings don't prevent a build.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Docs is the page that findings link to, and Tutorial the page for new authors, relative to the project.
const (
	Docs     = "docs/tools-reference.md"
	Tutorial = "docs/tools.md"
)

// Finding is an error in a tool, or a point that its author should reconsider.
type Finding struct {
	Severity Severity `json:"severity"`
	// Tool is the tool's directory name; empty if the finding isn't about a single tool.
	Tool string `json:"tool,omitempty"`
	File string `json:"file"`
	// Line counts from 1; 0 means the whole file.
	Line int `json:"line,omitempty"`
	// Path is a JSON Pointer (RFC 6901) into a JSON file.
	Path string `json:"path,omitempty"`
	// Rule is the heading of [Docs] that Link leads to.
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Link    string `json:"link"`
}

// Report lists all findings, sorted by file, line and path.
type Report struct {
	// Version is the registry's version; empty after errors.
	Version  string    `json:"version,omitempty"`
	Tools    []string  `json:"tools"`
	Findings []Finding `json:"findings"`
	Written  []string  `json:"written,omitempty"`

	registry registry.File // the result; without tools after errors
}

// Errors counts the errors.
func (r *Report) Errors() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == SeverityError {
			n++
		}
	}
	return n
}

// WriteJSON writes the report as a JSON object, for editors and scripts.
func (r *Report) WriteJSON(w io.Writer) error {
	if err := writeJSON(w, r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Summary returns the result: a line of counts, and a line for each written file. After errors, otherwise ends the
// first line; it may be empty.
func (r *Report) Summary(otherwise string) string {
	counts := []string{textutil.Count(len(r.Tools), "tool"), textutil.Count(r.Errors(), "error"),
		textutil.Count(len(r.Findings)-r.Errors(), "warning")}
	if r.Errors() > 0 {
		if otherwise != "" {
			counts = append(counts, otherwise)
		}
		return strings.Join(counts, ", ")
	}
	if r.Version != "" {
		counts = append([]string{"registry " + r.Version}, counts...)
	}
	for _, name := range r.Written {
		counts = append(counts, "wrote "+name)
	}
	return strings.Join(counts, "\n  ")
}

// WriteFindings writes a paragraph for each finding, in the format file:line: message that editors parse.
func (r *Report) WriteFindings(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
		if f.Severity == SeverityWarning {
			b.WriteString("warning: ")
		}
		if f.Path != "" {
			b.WriteString(f.Path + ": ")
		}
		b.WriteString(f.Message + "\n    " + f.Link + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	return nil
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	r.Findings = slices.Compact(r.Findings)
}

// Rules that aren't fields of schema.json. A field's rule is its name in lower case.
const (
	ruleDirectory  = "the-directory"
	ruleFiles      = "the-files"
	ruleSchema     = "schemajson"
	ruleParameters = "parameters"
	ruleForms      = "limits-of-providers"
	ruleGuide      = "guidemd"
	ruleSummary    = "the-summary"
	ruleExamples   = "the-examples"
	ruleHandler    = "handlergo"
	ruleGenerated  = "generated-files"
	ruleVariant    = "variantof"
	ruleWrites     = "an-action-that-writes-without-confirmation"
)

var fields = spec.Keys()

func ruleOf(path string) string {
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if slices.Contains(fields, field) {
		return strings.ToLower(field)
	}
	return ruleSchema
}

// syntaxProblem describes the first syntax error of a JSON text with its line; the text is empty without one.
func syntaxProblem(data []byte) (line int, text string) {
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return 0, ""
	case !isSyntax:
		return 0, "this is not valid JSON: " + err.Error()
	case strings.HasPrefix(err.Error(), "unexpected end"):
		return lineAt(data, len(data)), "the JSON ends too early; is a bracket missing?"
	case strings.HasSuffix(err.Error(), "after top-level value"):
		return lineAt(data, int(syntax.Offset)-1), "the JSON value is followed by other text; remove it"
	}
	return lineAt(data, int(syntax.Offset)-1), "this is not valid JSON: " + err.Error()
}

// lineOf returns the line of a pointer's target in a valid JSON text, or of the nearest value around it. Of equal keys
// the last one counts.
func lineOf(data []byte, pointer string) int {
	place, _ := document.ParsePointer(pointer)
	dec := json.NewDecoder(bytes.NewReader(data))
	here := func() int { return lineAt(data, int(dec.InputOffset())) }
	t, _ := dec.Token()
	line := here()
	for depth, want := range place {
		kind, _ := t.(json.Delim)
		at, found := line, false
		for i := 0; !found && (kind == '{' || kind == '[') && dec.More(); i++ {
			name := strconv.Itoa(i)
			if kind == '{' {
				key, _ := dec.Token()
				name, _ = key.(string)
			}
			if name == want {
				value := len(data) - len(bytes.TrimLeft(data[dec.InputOffset():], ": \t\r\n,"))
				at = lineAt(data, value)
				if found = kind == '[' || depth < len(place)-1; found {
					break
				}
			}
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return at
			}
		}
		if line = max(line, at); !found {
			return line
		}
		t, _ = dec.Token()
		line = max(line, here())
	}
	return line
}

// spaced adds the spaces to compact JSON that people expect in a line.
func spaced(text json.RawMessage) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range string(text) {
		b.WriteRune(c)
		if !quoted && (c == ',' || c == ':') {
			b.WriteByte(' ')
		}
		if c == '"' && !escaped {
			quoted = !quoted
		}
		escaped = c == '\\' && !escaped
	}
	return b.String()
}

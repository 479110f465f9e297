package kb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The limits of a source's files.
const (
	maxMarkdownBytes    = 256 << 10
	maxFrontMatterBytes = 32 << 10
	maxLineBytes        = 512 << 10 // bounds a line of a JSON lines file, maxJSONLBytes the file
	maxJSONLBytes       = 512 << 20
)

// parseMarkdown parses a Markdown file with one record: YAML between two lines of three dashes with the fields of
// Record by their JSON names, then the text. A heading on the first line of the text is the default title, modified
// the default of last_updated. name is the file's name in problems. The record is valid only without problems.
func parseMarkdown(name string, data []byte, modified time.Time) (Record, []Problem) {
	if len(data) > maxMarkdownBytes {
		return Record{}, []Problem{{File: name,
			Message: fmt.Sprintf("the file has %d bytes; at most %d: split it into several records", len(data), maxMarkdownBytes)}}
	}
	front, body, line, err := splitFrontMatter(data)
	if err != nil {
		return Record{}, []Problem{{File: name, Line: line, Message: err.Error()}}
	}
	p := &frontMatter{file: name, record: Record{Text: string(body), LastUpdated: modified}, lines: map[string]int{}}
	p.read(front)
	if len(p.problems) > 0 {
		return Record{}, p.problems
	}
	if p.record.Title == "" {
		p.record.Title = firstHeading(body)
	}
	p.record.Normalize()
	return p.record, problemsOf(name, 1, p.record)
}

func problemsOf(name string, line int, r Record) []Problem {
	var problems []Problem
	for _, fault := range r.Faults() {
		problems = append(problems, Problem{File: name, Line: line, Message: fault})
	}
	return problems
}

const dashes = "---"

// splitFrontMatter returns the front matter, without its lines of dashes, and the rest; or an error and its line.
func splitFrontMatter(data []byte) (front, body []byte, line int, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != dashes {
		return nil, nil, 1, errors.New("the file does not begin with a line of three dashes; the front matter with id and " +
			"title belongs between two of them")
	}
	for at, n := 0, 2; ; n++ {
		one, after, more := bytes.Cut(rest[at:], []byte("\n"))
		if string(bytes.TrimRight(one, " \t\r")) == dashes {
			return rest[:at], after, 0, nil
		}
		at += len(one) + 1
		if !more {
			return nil, nil, n, errors.New("the front matter has no end: write a second line of three dashes after it")
		}
		if at > maxFrontMatterBytes {
			return nil, nil, n, fmt.Errorf("the front matter is longer than %d bytes", maxFrontMatterBytes)
		}
	}
}

func firstHeading(body []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(body), []byte("\n"))
	if title, ok := strings.CutPrefix(string(line), "# "); ok {
		return title
	}
	return ""
}

type frontMatter struct {
	file     string
	record   Record
	lines    map[string]int
	problems []Problem
}

func (p *frontMatter) bad(line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

func (p *frontMatter) read(front []byte) {
	var doc yaml.Node
	if err := yaml.Unmarshal(front, &doc); err != nil {
		line, message := 2, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				line, message = n+1, m[2]
			}
		}
		p.bad(line, "the front matter is not YAML: %s", message)
		return
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		p.bad(2, "the front matter is not a list of fields like \"id: person:ada_l\"")
		return
	}
	fields := doc.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		key, value := fields[i], fields[i+1]
		line := key.Line + 1 // the dashes are line 1
		if p.lines[key.Value] != 0 {
			p.bad(line, "%s occurs twice", key.Value)
			continue
		}
		p.lines[key.Value] = line
		p.field(key.Value, value, line)
	}
}

func (p *frontMatter) field(key string, value *yaml.Node, line int) {
	r := &p.record
	texts := map[string]func(string){
		"id":          func(s string) { r.ID = s },
		"type":        func(s string) { r.Type = Type(s) },
		"namespace":   func(s string) { r.Namespace = Namespace(s) },
		"title":       func(s string) { r.Title = s },
		"url":         func(s string) { r.URL = s },
		"source_type": func(s string) { r.SourceType = s },
	}
	if set := texts[key]; set != nil {
		if value.Kind != yaml.ScalarNode {
			p.bad(line, "%s must be one text", key)
			return
		}
		if value.Tag != "!!null" {
			set(value.Value)
		}
		return
	}
	switch key {
	case "tags":
		p.list(value, line, "tags", "a tag", &r.Tags)
	case "authors":
		p.list(value, line, "authors", "an author", &r.Authors)
	case "categories":
		p.list(value, line, "categories", "a category", &r.Categories)
	case "last_updated":
		at, err := parseTime(value.Value)
		if value.Kind != yaml.ScalarNode || err != nil {
			p.bad(line, "last_updated must be RFC 3339, like 2026-03-01T09:00:00Z, or a day, like 2026-03-01")
			return
		}
		r.LastUpdated = at
	case "metadata":
		p.metadata(value, line)
	case "text":
		p.bad(line, "text belongs below the front matter, not in it")
	default:
		p.bad(line, "%s is not a field; the fields are id, type, namespace, title, tags, authors, categories, url, source_type, "+
			"last_updated, metadata", key)
	}
}

// list parses texts in a list or between commas.
func (p *frontMatter) list(value *yaml.Node, line int, key, one string, to *[]string) {
	switch value.Kind {
	case yaml.SequenceNode:
		for _, entry := range value.Content {
			if entry.Kind != yaml.ScalarNode {
				p.bad(entry.Line+1, "%s must be a text", one)
				return
			}
			*to = append(*to, entry.Value)
		}
	case yaml.ScalarNode:
		*to = strings.Split(value.Value, ",")
	default:
		p.bad(line, "%s must be a list, like [studio, handbook]", key)
	}
}

func (p *frontMatter) metadata(value *yaml.Node, line int) {
	if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
		return
	}
	if value.Kind != yaml.MappingNode {
		p.bad(line, "metadata must be a list of names and values")
		return
	}
	converted, err := jsonValue(value, 0)
	if err != nil {
		p.bad(line, "metadata: %v", err)
		return
	}
	m, ok := converted.(map[string]any)
	if !ok {
		p.bad(line, "metadata must be a list of names and values")
		return
	}
	p.record.Metadata = m
}

const maxDepth = 8

// jsonValue converts YAML to a JSON value. Dates stay text, and numbers keep their digits. It refuses aliases, because
// a few lines of them can exceed all memory.
func jsonValue(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("line %d: a name must be a text", key.Line+1)
			}
			if _, ok := m[key.Value]; ok {
				return nil, fmt.Errorf("line %d: %s occurs twice", key.Line+1, key.Value)
			}
			v, err := jsonValue(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		values := make([]any, 0, len(n.Content))
		for _, one := range n.Content {
			v, err := jsonValue(one, depth+1)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return values, nil
	case yaml.ScalarNode:
		return jsonScalar(n), nil
	}
	return nil, fmt.Errorf("line %d: anchors and aliases are not allowed", n.Line+1)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func jsonScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value)
		}
	}
	return n.Value
}

// parseTime parses RFC 3339 or a day, which begins in UTC.
func parseTime(s string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	return time.Parse(time.DateOnly, s)
}

// located is a record with its line number and hash.
type located struct {
	record Record
	line   int
	hash   string
}

const maxProblems = 100 // bounds the reported problems of a file. A last one counts the others.

// parseJSONL parses JSON lines: one object in each line with the fields of Record. It skips empty lines and lines
// that begin with //. A bad line is a problem and does not affect other lines. modified is the default of last_updated.
func parseJSONL(name string, r io.Reader, modified time.Time) ([]located, []Problem) {
	var records []located
	var problems []Problem
	more := 0
	bad := func(p ...Problem) {
		keep := min(len(p), maxProblems-len(problems))
		problems = append(problems, p[:keep]...)
		more += len(p) - keep
	}
	reader := bufio.NewReaderSize(io.LimitReader(r, maxJSONLBytes+1), 64<<10)
	var total int64
	for line := 1; ; line++ {
		data, size, err := readLine(reader)
		total += size
		switch {
		case total > maxJSONLBytes:
			bad(Problem{File: name, Line: line,
				Message: fmt.Sprintf("the file has more than %d bytes; the rest is ignored", maxJSONLBytes)})
			err = io.EOF
		case size > maxLineBytes:
			bad(Problem{File: name, Line: line, Message: fmt.Sprintf("the line has %d bytes; at most %d", size, maxLineBytes)})
		default:
			if rec, p, ok := parseLine(name, line, data, modified); ok {
				records = append(records, located{rec, line, rec.Hash()})
			} else {
				bad(p...)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				bad(Problem{File: name, Line: line, Message: "cannot be read: " + err.Error()})
			}
			break
		}
	}
	if more > 0 {
		problems = append(problems, Problem{File: name, Message: fmt.Sprintf("and %d more problems", more)})
	}
	return records, problems
}

// readLine reads a line. It returns about maxLineBytes of it and its size.
func readLine(r *bufio.Reader) (data []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(data) <= maxLineBytes {
			data = append(data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return data, size, err
		}
	}
}

// fileRecord is a record in a file. Its time may be a day.
type fileRecord struct {
	Record
	LastUpdated *string `json:"last_updated"`
}

// parseLine parses a line. An empty line has neither a record nor a problem.
func parseLine(name string, line int, data []byte, modified time.Time) (Record, []Problem, bool) {
	data = bytes.TrimSpace(data)
	if line == 1 {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	if len(data) == 0 || bytes.HasPrefix(data, []byte("//")) {
		return Record{}, nil, false
	}
	fault := func(format string, args ...any) (Record, []Problem, bool) {
		return Record{}, []Problem{{File: name, Line: line, Message: fmt.Sprintf(format, args...)}}, false
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var f fileRecord
	if err := decoder.Decode(&f); err != nil {
		return fault("is not a record in JSON: %s", jsonMessage(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault("there is more after the record; write one record in each line")
	}
	rec := f.Record
	rec.LastUpdated = modified
	if f.LastUpdated != nil {
		at, err := parseTime(*f.LastUpdated)
		if err != nil {
			return fault("last_updated must be RFC 3339, like 2026-03-01T09:00:00Z, or a day, like 2026-03-01")
		}
		rec.LastUpdated = at
	}
	rec.Normalize()
	if problems := problemsOf(name, line, rec); problems != nil {
		return Record{}, problems, false
	}
	return rec, nil, true
}

// jsonMessage describes an error without the names of Go types.
func jsonMessage(err error) string {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typed.Field == "" {
			return fmt.Sprintf("it is a JSON %s, not an object", typed.Value)
		}
		// The path begins with the embedded Record of fileRecord.
		return fmt.Sprintf("%s cannot be a JSON %s", strings.TrimPrefix(typed.Field, "Record."), typed.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "it is incomplete"
	}
	return err.Error()
}

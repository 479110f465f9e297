package kb

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
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
	record := Record{Text: string(body), LastUpdated: modified}
	if problems := readFrontMatter(name, front, &record); len(problems) > 0 {
		return Record{}, problems
	}
	if record.Title == "" {
		record.Title = firstHeading(body)
	}
	record.Normalize()
	var problems []Problem
	for _, fault := range record.Faults() {
		problems = append(problems, Problem{File: name, Line: 1, Message: fault})
	}
	return record, problems
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

// frontMatter reads the fields of a record. The lines of its problems count from the line after the dashes.
type frontMatter struct{ *strict.Reader }

var frontMatterFields = []string{"id", "type", "namespace", "title", "tags", "authors", "categories", "url", "source_type",
	"last_updated", "metadata"}

func readFrontMatter(name string, front []byte, into *Record) []Problem {
	r := frontMatter{strict.NewReader(name)}
	if top := r.Document(front); top != nil {
		r.record(top, into)
	}
	found, ok := errors.AsType[*strict.Error](r.Err())
	if !ok {
		return nil
	}
	var problems []Problem
	for _, p := range found.Problems {
		problems = append(problems, Problem{File: name, Line: p.Line + 1, Message: "front matter: " + p.Text})
	}
	return problems
}

func (r frontMatter) record(top *yaml.Node, into *Record) {
	m, ok := r.Map(top, "the record", frontMatterFields...)
	if !ok {
		return
	}
	into.ID, into.Title, into.URL, into.SourceType = r.text(m, "id"), r.text(m, "title"), r.text(m, "url"), r.text(m, "source_type")
	into.Type, into.Namespace = Type(r.text(m, "type")), Namespace(r.text(m, "namespace"))
	into.Tags, into.Authors, into.Categories = r.texts(m, "tags"), r.texts(m, "authors"), r.texts(m, "categories")
	if n := m.Get("last_updated"); n != nil {
		if at, err := parseTime(n.Value); err == nil {
			into.LastUpdated = at
		} else {
			r.Problem(n, "%s", badTime)
		}
	}
	if n := m.Get("metadata"); n != nil && n.Tag != "!!null" {
		if into.Metadata, ok = r.json(n, "metadata").(map[string]any); !ok {
			r.Problem(n, "metadata must be a mapping, not %s", strict.Kind(n))
		}
	}
}

// text returns an empty text for a key without a value.
func (r frontMatter) text(m strict.Map, key string) string {
	n := m.Get(key)
	if n == nil || n.Tag == "!!null" {
		return ""
	}
	text, _ := r.Text(n, key)
	return text
}

// texts reads texts in a list or between commas.
func (r frontMatter) texts(m strict.Map, key string) []string {
	n := m.Get(key)
	if n == nil || n.Kind != yaml.SequenceNode {
		return strings.Split(r.text(m, key), ",")
	}
	var all []string
	for _, entry := range n.Content {
		text, _ := r.Text(entry, "an entry of "+key)
		all = append(all, text)
	}
	return all
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// json converts YAML to a JSON value. Dates stay text, and numbers keep their digits.
func (r frontMatter) json(n *yaml.Node, what string) any {
	switch n.Kind {
	case yaml.MappingNode:
		m, _ := r.Map(n, what)
		object := map[string]any{}
		for _, key := range m.Keys() {
			object[key] = r.json(m.Get(key), what+"."+key)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, one := range n.Content {
			list = append(list, r.json(one, what))
		}
		return list
	}
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

const badTime = "last_updated must be RFC 3339, like 2026-03-01T09:00:00Z, or a day, like 2026-03-01"

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
	line := 1
	bad := func(faults ...string) {
		keep := min(len(faults), maxProblems-len(problems))
		for _, fault := range faults[:keep] {
			problems = append(problems, Problem{File: name, Line: line, Message: fault})
		}
		more += len(faults) - keep
	}
	reader := bufio.NewReaderSize(io.LimitReader(r, maxJSONLBytes+1), 64<<10)
	var total int64
	for ; ; line++ {
		data, size, err := readLine(reader)
		total += size
		switch {
		case total > maxJSONLBytes:
			bad(fmt.Sprintf("the file has more than %d bytes; the rest is ignored", maxJSONLBytes))
			err = io.EOF
		case size > maxLineBytes:
			bad(fmt.Sprintf("the line has %d bytes; at most %d", size, maxLineBytes))
		default:
			rec, faults := parseLine(data, line == 1, modified)
			if bad(faults...); rec.ID != "" {
				records = append(records, located{rec, line, rec.Hash()})
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				bad("cannot be read: " + err.Error())
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

// parseLine parses a line. The record is empty for an empty line and for one with faults.
func parseLine(data []byte, first bool, modified time.Time) (Record, []string) {
	data = bytes.TrimSpace(data)
	if first {
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	}
	if len(data) == 0 || bytes.HasPrefix(data, []byte("//")) {
		return Record{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var f fileRecord
	if err := decoder.Decode(&f); err != nil {
		return Record{}, []string{"is not a record in JSON: " + jsonMessage(err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Record{}, []string{"there is more after the record; write one record in each line"}
	}
	rec := f.Record
	rec.LastUpdated = modified
	if f.LastUpdated != nil {
		at, err := parseTime(*f.LastUpdated)
		if err != nil {
			return Record{}, []string{badTime}
		}
		rec.LastUpdated = at
	}
	rec.Normalize()
	if faults := rec.Faults(); faults != nil {
		return Record{}, faults
	}
	return rec, nil
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

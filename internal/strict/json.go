package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// JSON is Document for JSON and returns the nodes of the same YAML. The YAML parser cannot read all JSON: it reports an
// error for "\ud83d\ude00", which is one character.
func (r *Reader) JSON(data []byte) *yaml.Node {
	switch {
	case len(data) > MaxBytes:
		r.Problem(nil, "the file has %d bytes; at most %d are read", len(data), MaxBytes)
		return nil
	case !utf8.Valid(data):
		r.Problem(nil, "this is not JSON, because it is not UTF-8")
		return nil
	}
	j := &jsonReader{data: data, line: 1, Decoder: json.NewDecoder(bytes.NewReader(data))}
	j.UseNumber()
	top, err := j.value(0)
	if err == nil {
		if _, err = j.Token(); errors.Is(err, io.EOF) {
			return top
		}
		err = errors.New("something follows the document")
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.Problem(&yaml.Node{Line: j.at()}, "this is not JSON: %v", err)
	return nil
}

type jsonReader struct {
	*json.Decoder
	data []byte
	from int // the offset up to which line counts
	line int
}

// at returns the line of the last token.
func (j *jsonReader) at() int {
	to := min(int(j.InputOffset()), len(j.data))
	j.line += bytes.Count(j.data[j.from:to], []byte("\n"))
	j.from = to
	return j.line
}

func (j *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deep")
	}
	t, err := j.Token()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names it
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: j.at()}
	switch t := t.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		return n, j.contents(n, depth)
	case string:
		n.Tag, n.Value = "!!str", t
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if t {
			n.Value = "true"
		}
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
		if _, err := t.Int64(); err == nil {
			n.Tag = "!!int"
		}
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

func (j *jsonReader) contents(n *yaml.Node, depth int) error {
	for j.More() {
		c, err := j.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, c)
	}
	_, err := j.Token()
	return err //nolint:wrapcheck // the caller names it
}

// Member is one member of a JSON object.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Members returns the members of a JSON object in their order, which decides, for example, which number of a text
// goes to which argument; false if raw is not an object.
func Members(raw json.RawMessage) ([]Member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []Member
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return out, false
		}
		out = append(out, Member{key, value})
	}
	return out, true
}

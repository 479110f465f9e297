package textmodel

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// unreadable says why an answer cannot be parsed. It contains none of the content.
type unreadable string

func (u unreadable) Error() string { return string(u) }

// maxWhole limits an answer that is not streamed, in bytes.
const maxWhole = 2 << 20

// read reads an answer: a stream of events, or a single JSON object, which some compatible servers and proxies send.
func (a *answer) read(body io.Reader) error {
	r := bufio.NewReader(body)
	first, err := firstByte(r)
	if err != nil {
		return err
	}
	switch first {
	case '{', '[':
		return a.readWhole(r)
	case '<':
		return unreadable("the answer is a web page; check the base URL and the proxy")
	}
	return a.readEvents(r)
}

func firstByte(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, err //nolint:wrapcheck // failure classifies it
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0xEF || c == 0xBB || c == 0xBF: // or a byte order mark
			continue
		}
		return c, r.UnreadByte() //nolint:wrapcheck // a byte was just read: it cannot fail
	}
}

// readEvents reads server-sent events until [DONE] or the end of the stream.
func (a *answer) readEvents(r io.Reader) error {
	d := ssestream.NewDecoder(&http.Response{Body: io.NopCloser(r)})
	for d.Next() {
		e := d.Event()
		data := bytes.TrimSpace(e.Data)
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			return a.end(true)
		}
		if e.Type == "error" {
			if p, ok := readProblem(data); ok {
				return p
			}
		}
		if err := a.event(data); err != nil {
			return err
		}
	}
	if err := d.Err(); err != nil && !a.finished { // otherwise the answer is complete
		return err //nolint:wrapcheck // failure classifies it
	}
	return a.end(false)
}

func (a *answer) readWhole(r io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
	if err != nil {
		return err //nolint:wrapcheck // failure classifies it
	}
	if len(raw) > maxWhole {
		return unreadable(fmt.Sprintf("the answer has more than %d bytes", maxWhole))
	}
	raw = bytes.TrimSpace(raw)
	if raw[0] == '[' { // only an error can be a list
		if p, ok := readProblem(raw); ok {
			return p
		}
		return unreadable("the answer is a JSON list, not a Chat Completions answer")
	}
	if err := a.event(raw); err != nil {
		return err
	}
	return a.end(true)
}

// end returns an error if the answer is incomplete. said: the provider has marked the end. Otherwise only a
// finish_reason shows that it is complete, because a dying server closes the stream, too.
func (a *answer) end(said bool) error {
	switch {
	case a.finished || said && a.begun:
		return nil
	case said || !a.begun:
		return errors.New("the answer is empty")
	default:
		return errors.New("the answer is incomplete: it has no finish_reason")
	}
}

func (a *answer) event(data []byte) error {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Detail  json.RawMessage `json:"detail"`
		Choices []struct {
			Message json.RawMessage `json:"message"`
			Delta   json.RawMessage `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return unreadable("part of the answer isn't Chat Completions JSON: " + err.Error())
	}
	if len(said.Error) > 0 && string(said.Error) != "null" {
		p, _ := readProblem(said.Error)
		return p
	}
	if said.Choices == nil && (said.Object == "error" || len(said.Detail) > 0) { // vLLM and FastAPI
		if p, ok := readProblem(data); ok {
			return p
		}
	}
	var chunk openai.ChatCompletionChunk
	err := json.Unmarshal(data, &chunk)
	for i, c := range said.Choices[:min(len(said.Choices), len(chunk.Choices))] {
		if c.Delta == nil && c.Message != nil { // a whole message is one delta
			err = cmp.Or(err, json.Unmarshal(c.Message, &chunk.Choices[i].Delta))
		}
	}
	if err != nil {
		return unreadable("part of the answer isn't Chat Completions JSON: " + err.Error())
	}
	return a.add(chunk)
}

// content returns the text of a content field: a string, or the text parts of a list.
func content(text, raw string) (string, error) {
	// The library puts a value that isn't a string into a text field unparsed.
	switch raw = strings.TrimSpace(raw); {
	case raw == "" || raw == "null":
		return "", nil
	case raw[0] == '"':
		return text, nil
	}
	var parts []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if raw[0] == '{' {
		raw = "[" + raw + "]"
	}
	if json.Unmarshal([]byte(raw), &parts) != nil {
		return "", unreadable("the content of the answer is neither text nor a list of parts")
	}
	var all strings.Builder
	for _, p := range parts {
		var s string
		if p.Type == "text" || p.Type == "output_text" || p.Type == "" {
			if json.Unmarshal(p.Text, &s) != nil {
				return "", unreadable("a part of the answer's content has no text")
			}
			all.WriteString(s)
		}
	}
	return all.String(), nil
}

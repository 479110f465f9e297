package jstool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"voicegw/registry/document"
)

// The gateway and its tool hosts exchange lines of JSON over pipes.

// Limits of the protocol.
const (
	// maxLine limits a line, in bytes. It holds a program, or the base64 of an answer to fetch.
	maxLine = 6 << 20
	// maxFetched limits the bodies of fetch, in bytes.
	maxFetched = 1 << 20
	// maxResult limits the JSON of a result, in bytes. The registry limits the data to less.
	maxResult = 1 << 20
	// maxText limits the text of an error and of a line of the log, in characters.
	maxText = 4 << 10
)

// toHost is a message to a host; one field is set.
type toHost struct {
	Call    *callMessage `json:"call,omitempty"`
	Cancel  uint64       `json:"cancel,omitempty"` // the call's number
	Fetched *fetched     `json:"fetched,omitempty"`
}

type callMessage struct {
	ID      uint64          `json:"id"`
	Program string          `json:"program"`        // its hash
	Code    string          `json:"code,omitempty"` // only if the host does not have the program
	Context json.RawMessage `json:"context"`
	// Millis is the time limit of the call in the host; the gateway may end it earlier.
	Millis int64 `json:"millis"`
}

// fetched is the answer to a fetchMessage.
type fetched struct {
	Call    uint64      `json:"call"`
	Request uint64      `json:"request"`
	Error   string      `json:"error,omitempty"`
	Status  int         `json:"status"`
	Text    string      `json:"statusText"`
	Headers http.Header `json:"headers,omitempty"`
	Body    []byte      `json:"body,omitempty"`
}

// fromHost is a message of a host: Call and one other field.
type fromHost struct {
	Call  uint64        `json:"call"`
	Done  *doneMessage  `json:"done,omitempty"`
	Log   *logMessage   `json:"log,omitempty"`
	Send  string        `json:"send,omitempty"` // the text of ws.send
	Fetch *fetchMessage `json:"fetch,omitempty"`
}

// doneMessage ends a call: with a result, an error that was thrown, or a failure of the host.
type doneMessage struct {
	Result json.RawMessage `json:"result,omitempty"`
	Thrown *thrown         `json:"thrown,omitempty"`
	Failed string          `json:"failed,omitempty"`
}

type thrown struct {
	Tool               bool            `json:"tool"` // a ToolError
	Type               string          `json:"type"`
	Message            string          `json:"message"`
	Retryable          bool            `json:"retryable"`
	PartialSideEffects bool            `json:"partialSideEffects"`
	Details            json.RawMessage `json:"details,omitempty"`
	Suggestion         string          `json:"suggestion"`
	Stack              string          `json:"stack"` // for the log
}

type logMessage struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

type fetchMessage struct {
	Request uint64            `json:"request"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Manual  bool              `json:"manual"` // redirects are answers
	Body    []byte            `json:"body,omitempty"`
}

var errLine = fmt.Errorf("a message has more than %d bytes", maxLine)

// receive calls take with each message until the stream ends. It returns nil at its end.
func receive[T any](r io.Reader, take func(T)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		var m T
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("a message cannot be read: %w", err)
		}
		take(m)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return errLine
	} else if err != nil {
		return fmt.Errorf("reading messages: %w", err)
	}
	return nil
}

func encode(m any) ([]byte, error) {
	data, err := document.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("a message cannot be written: %w", err)
	}
	if len(data) >= maxLine {
		return nil, errLine
	}
	return append(data, '\n'), nil
}

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

// guard turns everything that a server answers into messages that the SDK can read. The SDK ends a session at the first
// answer that it cannot read, and at a status such as 401; all conversations share the session, so only the call may fail.
type guard struct {
	headers    http.Header
	userHeader string
	// answers are for POST and DELETE; streams are for GET, whose answer lasts as long as the session.
	answers, streams *bounded.Outbound
}

const (
	maxAnswer = 4 << 20 // bytes
	maxStream = 64 << 20
	maxEvent  = 1 << 20 // bytes of a message
	longest   = 6 * time.Minute
	streaming = 24 * time.Hour // after it, the SDK opens another stream
	conns     = 64
)

func newGuard(s *Remote) *guard {
	limits := func(bytes int64, whole time.Duration) bounded.Limits {
		return bounded.Limits{Service: "the MCP server", Format: bounded.Events, Bytes: bytes, Piece: maxEvent, Idle: whole, Whole: whole}
	}
	return &guard{headers: s.Headers, userHeader: s.UserHeader, answers: bounded.NewOutbound(true, conns, limits(maxAnswer, longest)),
		streams: bounded.NewOutbound(true, conns, limits(maxStream, streaming))}
}

func (g *guard) close() {
	g.answers.Close()
	g.streams.Close()
}

// Codes of the errors that guard makes; free for applications (www.jsonrpc.org/specification, section 5.1).
const (
	codeStatus     = -32050 // the answer has an HTTP status; data is a status
	codeUnreadable = -32051
)

type status struct {
	Status int    `json:"status"`
	Said   string `json:"said"`
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range g.headers {
		r.Header[name] = values
	}
	if user, ok := r.Context().Value(userKey{}).(string); ok && g.userHeader != "" {
		r.Header.Set(g.userHeader, user)
	}
	if r.Method == http.MethodGet {
		return g.stream(r)
	}
	id, err := callID(r)
	if err != nil {
		return nil, err
	}
	resp, err := g.answers.Do(r)
	switch {
	case err != nil:
		return nil, bounded.Bare(err)
	case !id.IsValid():
		_ = resp.Body.Close()
		return answerOf(r, http.StatusAccepted, nil), nil // a failed notification harms no call
	case resp.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "":
		return resp, nil // the session is gone, which the SDK must know
	}
	return g.answer(r, resp, id)
}

// callID returns the id of the call in a request; invalid if it has none.
func callID(r *http.Request) (jsonrpc.ID, error) {
	if r.Body == nil {
		return jsonrpc.ID{}, nil
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return jsonrpc.ID{}, fmt.Errorf("the request cannot be read: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return jsonrpc.ID{}, fmt.Errorf("the request is not JSON-RPC: %w", err)
	}
	if req, is := m.(*jsonrpc.Request); is {
		return req.ID, nil
	}
	return jsonrpc.ID{}, nil
}

func (g *guard) answer(r *http.Request, resp *http.Response, id jsonrpc.ID) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	ok := resp.StatusCode/100 == 2
	if ok && kind == "text/event-stream" {
		resp.Body = &events{from: bufio.NewReader(resp.Body), body: resp.Body, keep: func(data []byte) []byte {
			m, err := decode(data)
			if answer, is := m.(*jsonrpc.Response); is && answer.ID != id {
				return nil // another call's, which this answer may not give
			}
			if err != nil {
				return failure(id, codeUnreadable, "the answer is not JSON-RPC", nil)
			}
			return data
		}}
		return resp, nil
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	m, broken := decode(data)
	answer, is := m.(*jsonrpc.Response)
	switch {
	case err == nil && broken == nil && is && answer.ID == id && (ok || answer.Error != nil):
	case !ok:
		said := ""
		if kind == "text/plain" || kind == "application/json" {
			said = document.Shorten(document.CleanText(string(data)), maxSaid)
		}
		data = failure(id, codeStatus, "HTTP status "+http.StatusText(resp.StatusCode), status{resp.StatusCode, said})
	default:
		data = failure(id, codeUnreadable, "the answer is not JSON-RPC, or that of another call", nil)
	}
	header := resp.Header
	resp = answerOf(r, http.StatusOK, data)
	if session := header.Get("Mcp-Session-Id"); session != "" {
		resp.Header.Set("Mcp-Session-Id", session)
	}
	return resp, nil
}

// stream opens the stream of a server's own messages, or continues the stream of an answer.
func (g *guard) stream(r *http.Request) (*http.Response, error) {
	resp, err := g.streams.Do(r)
	if err != nil {
		return nil, bounded.Bare(err)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		_ = resp.Body.Close()
		return answerOf(r, http.StatusMethodNotAllowed, nil), nil // the server has no stream
	}
	continued := r.Header.Get("Last-Event-Id") != ""
	resp.Body = &events{from: bufio.NewReader(resp.Body), body: resp.Body, keep: func(data []byte) []byte {
		m, err := jsonrpc.DecodeMessage(data)
		if _, is := m.(*jsonrpc.Response); err != nil || is && !continued {
			return nil
		}
		return data
	}}
	return resp, nil
}

func answerOf(r *http.Request, status int, data []byte) *http.Response {
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)),
		ContentLength: int64(len(data))}
}

// failure encodes an answer with an error.
func failure(id jsonrpc.ID, code int64, text string, data any) []byte {
	details, _ := json.Marshal(data) // a status cannot fail
	encoded, _ := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: text, Data: details}})
	return encoded
}

// events passes the events of a stream on whose messages keep returns, and no line that is malformed
// (html.spec.whatwg.org, section 9.2.6, read 2026-11-29). The body below bounds an event.
type events struct {
	from *bufio.Reader
	body io.Closer
	keep func(message []byte) []byte
	out  bytes.Buffer
	err  error
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	return e.out.Read(p) //nolint:wrapcheck // of a buffer
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() } //nolint:wrapcheck // of the body

func (e *events) next() {
	var fields, data bytes.Buffer
	for {
		line, err := e.from.ReadBytes('\n')
		text := bytes.TrimRight(line, "\r\n")
		if e.err = err; err != nil || len(text) == 0 {
			break
		}
		name, value, found := bytes.Cut(text, []byte{':'})
		switch {
		case !found, len(name) == 0:
		case string(name) == "data":
			data.Write(bytes.TrimPrefix(value, []byte{' '}))
			data.WriteByte('\n')
		default:
			fields.Write(append(text, '\n'))
		}
	}
	if data.Len() > 0 {
		message := e.keep(bytes.TrimSpace(data.Bytes()))
		if message == nil {
			return
		}
		fmt.Fprintf(&fields, "data: %s\n", bytes.ReplaceAll(message, []byte{'\n'}, []byte{' '}))
	}
	if fields.Len() > 0 {
		e.out.Write(append(fields.Bytes(), '\n'))
	}
}

// newLines returns a reader of lines that passes on what pass returns for each line of from, which ends with a line feed, too. The
// error is nil, or says that the line has more than 1 MiB; then it is only the beginning.
func newLines(from io.Reader, pass func(line []byte, err error) []byte) io.Reader {
	return &lines{from: bufio.NewReader(from), pass: pass}
}

type lines struct {
	from *bufio.Reader
	pass func(line []byte, err error) []byte
	out  []byte
}

var errTooLong = errors.New("the line is too long")

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.out) == 0 {
		line, err := l.line()
		if err != nil && !errors.Is(err, errTooLong) {
			return 0, err
		}
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			l.out = l.pass(line, err)
		}
	}
	n := copy(p, l.out)
	l.out = l.out[n:]
	return n, nil
}

// line returns the next line; with errTooLong the beginning of one of more than maxEvent bytes, whose rest is skipped.
func (l *lines) line() ([]byte, error) {
	var all []byte
	for {
		part, err := l.from.ReadSlice('\n')
		all = append(all, part[:min(len(part), maxEvent+1-len(all))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case len(all) > maxEvent:
			return all, errTooLong
		case errors.Is(err, io.EOF) && len(all) > 0:
			return append(all, '\n'), nil
		case err != nil:
			return nil, err //nolint:wrapcheck // io.EOF is part of io.Reader's contract
		default:
			return all, nil
		}
	}
}

// messages passes on the messages that a program writes. Other lines, such as logs, are dropped; if they begin as the answer to a
// call, it fails at once.
func messages(drop func(why string)) func([]byte, error) []byte {
	return func(line []byte, err error) []byte {
		if err == nil {
			_, err = decode(line)
		}
		if err == nil {
			return line
		}
		drop(strings.TrimSpace(err.Error()))
		m := answerID.FindSubmatch(line[:min(len(line), 200)])
		if m == nil {
			return nil
		}
		number, _ := strconv.ParseInt(string(m[1]), 10, 64) // the SDK's ids are numbers
		id, _ := jsonrpc.MakeID(float64(number))
		return append(failure(id, codeUnreadable, "the answer is not JSON-RPC", nil), '\n')
	}
}

// answerID finds the id in the beginning of an answer.
var answerID = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"`)

var (
	errNoAnswer = errors.New("the answer has neither a result nor an error")
	errMore     = errors.New("something follows the message")
)

// decode decodes a message, with nothing behind it.
func decode(data []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.DecodeMessage(data)
	if err == nil && !json.Valid(data) {
		err = errMore
	}
	if r, is := m.(*jsonrpc.Response); err == nil && is && r.Result == nil && r.Error == nil {
		err = errNoAnswer
	}
	return m, err //nolint:wrapcheck // it says what is wrong
}

// userKey is the context's key of the user for the server's user header.
type userKey struct{}

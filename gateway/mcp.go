package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"voicegw/internal/auth"
	"voicegw/internal/mcp"
)

const mcpPath = "/mcp"

// MCP serves the tools to MCP clients; *mcp.Server implements it.
type MCP interface {
	Serve(w http.ResponseWriter, r *http.Request, from mcp.Caller, parts bool)
}

// mcp answers a JSON-RPC message of an MCP client. A trusted server names the user and grants scopes in headers.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) *problem {
	var message json.RawMessage
	if no := readBody(w, r, &message, false); no != nil {
		return no
	}
	scopes := strings.Fields(strings.ReplaceAll(r.Header.Get("X-Voicegw-Scopes"), ",", " "))
	turn, no := chatAPI{s}.turnBy(r, r.Header.Get("X-Voicegw-User"), scopes)
	if no != nil {
		return no
	}
	if wrong := scopesProblem(scopes); wrong != "" {
		return invalid(wrong)
	}
	if no := grantProblem(r, scopes); no != nil {
		return no
	}
	method, id := requestOf(message)
	if method == "tools/call" || method == "" {
		leave, no := s.enterChat(w, r, turn.User)
		if no != nil {
			return no
		}
		defer leave()
	}
	r.Body = io.NopCloser(bytes.NewReader(message))
	from := mcp.Caller{User: turn.User, Vouched: turn.Vouched, Scopes: turn.Scopes, Key: turn.Key}
	if auth.From(r.Context()).Unauthenticated() {
		from.Key = s.nameless(r).String()
	}
	s.opts.MCP.Serve(&rpcErrors{ResponseWriter: w, id: id}, r, from, bytes.Contains(message, []byte(`"progressToken"`)))
	return nil
}

// requestOf returns the method of a single message, empty for others, and its id; nil without one.
func requestOf(message json.RawMessage) (method string, id json.RawMessage) {
	var fields map[string]json.RawMessage // their names are case-sensitive
	if json.Unmarshal(message, &fields) != nil || json.Unmarshal(fields["method"], &method) != nil {
		return "", nil
	}
	return method, fields["id"]
}

func mcpOnlyPost(w http.ResponseWriter, _ *http.Request) *problem {
	w.Header().Set("Allow", "POST, OPTIONS")
	return refusal(http.StatusMethodNotAllowed, "method_not_allowed", "Send messages with POST; this server keeps no sessions.")
}

// writeRPC writes a problem as an error of JSON-RPC without an id (https://www.jsonrpc.org/specification, section 5).
func writeRPC(w http.ResponseWriter, p *problem) {
	code := -32000 // a server error
	if p.status == http.StatusBadRequest {
		code = -32600 // an invalid request
	}
	answer(w, p.status, map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": code, "message": p.message, "data": map[string]any{"code": p.code}}})
}

// rpcErrors replaces the SDK's plain text errors by those of JSON-RPC.
type rpcErrors struct {
	http.ResponseWriter
	id     json.RawMessage // of the request; nil if there is no single one
	status int             // of a plain text error; zero without one
}

// Unwrap is for http.ResponseController.
func (w *rpcErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits for the text of a plain text error.
func (w *rpcErrors) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer, or a whole error.
func (w *rpcErrors) Write(b []byte) (int, error) {
	if w.status == 0 {
		return w.ResponseWriter.Write(b)
	}
	if w.id != nil && bytes.Contains(b, []byte("JSON RPC not handled")) { // how the SDK (v1.8.0) says it in versions before 2026-07-28
		answer(w.ResponseWriter, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": w.id,
			"error": map[string]any{"code": -32601, "message": "method not found"}})
		return len(b), nil
	}
	writeRPC(w.ResponseWriter, refusal(w.status, "invalid_message", strings.TrimSpace(string(b))))
	return len(b), nil
}

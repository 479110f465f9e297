package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/httptool"
	"voicegw/internal/jstool"
	"voicegw/internal/mcp"
	"voicegw/registry"
)

// services is the HTTP server with the tools that are not in Go. It trusts the gateways' requests.
type services struct {
	server  *httptest.Server
	scripts string                           // the directory of the tools in JavaScript
	broke   func(format string, args ...any) // reports an invalid request

	mu    sync.Mutex            // guards the following field
	nodes map[string]*chaosNode // by name
}

// The headers that gateways send. headerNode names the gateway; its clients are configured with it.
const (
	headerNode    = "X-Node"
	headerSession = "X-Session"
	headerUser    = "X-User"
	headerTurn    = "X-Turn"
)

// mcpServer is the gateways' name of the MCP server.
const mcpServer = "shop"

// newCounter starts the services. The caller has to call close.
func newCounter(scripts string, broke func(format string, args ...any)) *counter {
	c := &counter{services: &services{scripts: scripts, broke: broke, nodes: map[string]*chaosNode{}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /http/{tool}", c.serveHTTP)
	mux.Handle("/mcp", c.serveMCP())
	c.server = httptest.NewServer(mux)
	return c
}

// foreign makes a gateway's tools that are not in Go. closeAll ends their connections.
func (s *services) foreign(n *chaosNode) (all registry.Foreign, closeAll func(), err error) {
	s.mu.Lock()
	s.nodes[n.name] = n
	s.mu.Unlock()
	all.Handlers = map[string]registry.Handler{}
	client := mcp.NewClient(slog.New(slog.DiscardHandler))
	closers := []func(){client.Close}
	var tools []*mcp.Tool
	for _, spec := range chaosTools {
		switch spec.kind {
		case kindJS:
			entry, tool, hosts, err := s.script(spec, n)
			if err != nil {
				return all, nil, err
			}
			closers = append(closers, hosts.Close)
			all.Entries, all.Handlers[spec.id] = append(all.Entries, entry), hosts.Handler(tool)
		case kindHTTP:
			entry := spec.entry()
			tool, err := httptool.Parse(spec.id+"/"+httptool.FileName, fmt.Appendf(nil, `{url: "%s/http/%s", private: true, headers: {
				%s: "%s", %s: "{session.id}", %s: "{session.user}", %s: "{session.turn}"}}`,
				s.server.URL, spec.id, headerNode, n.name, headerSession, headerUser, headerTurn), &entry.Spec)
			if err != nil {
				return all, nil, err
			}
			all.Entries, all.Handlers[spec.id] = append(all.Entries, entry), tool.Handler()
		case kindMCP:
			tool, err := spec.approved()
			if err != nil {
				return all, nil, err
			}
			tools = append(tools, tool)
			all.Entries, all.Handlers[spec.id] = append(all.Entries, tool.Entry), client.Handler(tool)
		}
	}
	client.Use(map[string]mcp.Remote{mcpServer: {URL: s.server.URL + "/mcp", Headers: http.Header{headerNode: {n.name}}}}, tools)
	return all, func() {
		for _, end := range closers {
			end()
		}
	}, nil
}

// chaosScript is the handler of every tool in JavaScript. It calls the same service as HTTP tools do.
const chaosScript = `import { ToolError, ErrorType } from "../_core/error-types.js";

const [shop, node] = ["%s", "%s"];

export async function execute({ args, clientId, session, idempotencyKey, meta }) {
  const answer = await fetch(shop + "/http/" + meta.toolId, {
    method: "POST",
    headers: {
      "X-Node": node, "X-Session": clientId, "X-User": session.state.userId, "X-Turn": String(session.state.turn),
      ...(idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {}),
    },
    body: JSON.stringify(args),
  });
  if (answer.status === 425) throw new ToolError(ErrorType.TRANSIENT, "It does not work at the moment.", { retryable: true });
  if (answer.status === 409) throw new ToolError(ErrorType.CONFLICT, "It cannot be done.");
  if (!answer.ok) throw new ToolError(ErrorType.PERMANENT, "It stopped in the middle.", { partialSideEffects: true });
  return { ok: true, data: await answer.json() };
}
`

// script makes a tool in JavaScript.
func (s *services) script(spec chaosTool, n *chaosNode) (registry.Entry, *jstool.Tool, *jstool.Hosts, error) {
	entry := spec.entry()
	entry.Network = []string{s.server.URL}
	dir := filepath.Join(s.scripts, n.name)
	name := strings.ReplaceAll(spec.id, "_", "-")
	err := os.MkdirAll(filepath.Join(dir, name), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name, jstool.FileName), fmt.Appendf(nil, chaosScript, s.server.URL, n.name), 0o600)
	}
	if err != nil {
		return entry, nil, nil, err
	}
	hosts := jstool.New([]string{serveScripts}, slog.New(slog.DiscardHandler))
	tool, problems := jstool.Parse(dir, name, &entry.Spec)
	if tool == nil {
		return entry, nil, nil, fmt.Errorf("the tool %s: %v", spec.id, problems)
	}
	entry.Handler = tool.Hash()
	return entry, tool, hosts, nil
}

// said returns the MCP server's description of a tool.
func (c chaosTool) said() mcp.Said {
	entry := c.entry()
	return mcp.Said{Name: strings.TrimPrefix(c.id, mcpServer+"__"), Description: entry.Description, InputSchema: entry.Parameters}
}

// approved returns a tool of the MCP server as in a lock file.
func (c chaosTool) approved() (*mcp.Tool, error) {
	said := c.said()
	pin, err := said.Pin()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c.entry().Spec)
	if err != nil {
		return nil, err
	}
	decided := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &decided); err != nil {
		return nil, err
	}
	for _, key := range []string{"toolId", "version", "description", "parameters"} {
		delete(decided, key)
	}
	tool, problems := mcp.NewTool(mcpServer, said.Name, &mcp.Pinned{Pin: pin, Said: said, Tool: decided})
	if len(problems) > 0 {
		return nil, fmt.Errorf("the tool %s: %v", c.id, problems)
	}
	return tool, nil
}

// close ends the services after all gateways have ended.
func (s *services) close() { s.server.Close() }

// asked returns a call's arguments and the gateway that sent it.
func (s *services) asked(from http.Header, text []byte) (args chaosArgs, n *chaosNode, ok bool) {
	s.mu.Lock()
	n = s.nodes[from.Get(headerNode)]
	s.mu.Unlock()
	err := json.Unmarshal(text, &args)
	if n == nil || err != nil {
		s.broke("a service got %s from %q: %v", text, from.Get(headerNode), err)
	}
	return args, n, n != nil && err == nil
}

// serveHTTP answers the requests of HTTP tools.
func (c *counter) serveHTTP(w http.ResponseWriter, req *http.Request) {
	spec, _ := named(req.PathValue("tool"))
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return // the gateway is gone
	}
	args, n, ok := c.asked(req.Header, text)
	turn, err := strconv.Atoi(req.Header.Get(headerTurn))
	key := req.Header.Get("Idempotency-Key")
	if !ok || err != nil || spec.writes != (key != "") {
		c.broke("the service of %s got the headers %v", spec.id, req.Header)
		http.Error(w, "unknown", http.StatusBadRequest)
		return
	}
	r := c.begin(spec, args, &run{node: n, session: req.Header.Get(headerSession), user: req.Header.Get(headerUser), turn: turn, action: key})
	defer c.end(r)
	if c.act(req.Context(), spec.kind, r, args.How) != nil {
		return
	}
	switch args.How {
	case "fail":
		status := http.StatusServiceUnavailable // from a tool that writes, it would not mean that nothing was done
		if spec.writes {
			status = http.StatusTooEarly
		}
		http.Error(w, "It does not work at the moment.", status)
	case "refuse":
		http.Error(w, "It cannot be done.", http.StatusConflict)
	case "partial":
		http.Error(w, "It stopped in the middle.", http.StatusInternalServerError)
	case "panic":
		panic(http.ErrAbortHandler) // the connection is closed without an answer
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"ref":%q}`, args.Ref)
	}
}

// serveMCP is the MCP server. The SDK's server answers, except calls that fail below it.
func (c *counter) serveMCP() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: mcpServer, Version: "1"}, nil)
	for _, spec := range chaosTools {
		if spec.kind != kindMCP {
			continue
		}
		said := spec.said()
		server.AddTool(&sdk.Tool{Name: said.Name, Description: said.Description, InputSchema: said.InputSchema},
			func(ctx context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				args, r := c.called(spec, call.Extra.Header, call.Params)
				if r == nil {
					return nil, errUnknown
				}
				defer c.end(r)
				if err := c.act(ctx, spec.kind, r, args.How); err != nil {
					return nil, err
				}
				switch args.How {
				case "refuse":
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "It cannot be done."}
				case "partial":
					return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "It stopped in the middle."}}}, nil
				}
				return &sdk.CallToolResult{StructuredContent: map[string]string{"ref": args.Ref}}, nil
			})
	}
	return c.failing(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
}

var errUnknown = errors.New("an unknown call")

// called records a call of the MCP server; nil for an invalid one.
func (c *counter) called(spec chaosTool, from http.Header, p *sdk.CallToolParamsRaw) (chaosArgs, *run) {
	args, n, ok := c.asked(from, p.Arguments)
	key, _ := p.Meta[mcp.KeyMeta].(string)
	if !ok || spec.writes != (key != "") {
		c.broke("the MCP server got %s with the _meta %v", spec.id, p.Meta)
		return args, nil
	}
	return args, c.begin(spec, args, &run{node: n, action: key})
}

// failing handles calls with an error response or a lost connection.
func (c *counter) failing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return // the gateway is gone
		}
		req.Body = io.NopCloser(bytes.NewReader(text))
		var call struct {
			Method string
			Params *sdk.CallToolParamsRaw
		}
		var asked chaosArgs
		if json.Unmarshal(text, &call) != nil || call.Method != "tools/call" || json.Unmarshal(call.Params.Arguments, &asked) != nil ||
			asked.How != "fail" && asked.How != "panic" {
			next.ServeHTTP(w, req)
			return
		}
		spec, _ := named(mcpServer + "__" + call.Params.Name)
		args, r := c.called(spec, req.Header, call.Params)
		if r == nil {
			http.Error(w, "unknown", http.StatusBadRequest)
			return
		}
		defer c.end(r)
		_ = c.act(req.Context(), spec.kind, r, args.How) // these do not wait
		if args.How == "panic" {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "It does not work at the moment.", http.StatusTooEarly)
	})
}

// settle completes the runs of MCP tools with the callers' knowledge: a wish belongs to one visit, and so to one
// session. The session is empty if the caller left before it knew it.
func (e *evidence) settle() {
	visits := map[string]*visit{}
	for _, v := range e.visits {
		visits[v.voice()] = v
	}
	for _, r := range e.runs {
		name, _, _ := strings.Cut(r.ref, "w")
		if spec, _ := named(r.tool); spec.kind == kindMCP && visits[name] != nil {
			r.session, r.user = visits[name].session, visits[name].caller.user
		}
	}
}

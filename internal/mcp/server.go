package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/config/setting"
	"voicegw/internal/audit"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// Options configure a Server. Audit, Live and Logger may be nil.
type Options struct {
	Tools    func() *registry.Snapshot
	Executor *execute.Executor
	Rules    calls.Policy // of text mode
	Agent    string       // whose tools are offered
	Live     registry.LiveValues
	Audit    func(audit.Record)
	Version  string // of the gateway
	// Changes tells clients of changed tools, which needs a client that stays connected: one of [Server.Run].
	Changes bool
	Logger  *slog.Logger
	Settings
}

// Settings may change while a Server runs.
type Settings struct {
	// Expose are the ids of the offered tools; none means the read-only ones that need no approval.
	Expose []string
	// PerMinute limits the calls of a Caller's Key; zero means setting.MCPCalls.
	PerMinute int
	// Elicit asks for approvals through clients that can ask their user. Otherwise only the gateway's API approves.
	Elicit bool
}

// Server serves tools. It is safe for concurrent use.
type Server struct {
	// Fixed after New.
	opts     Options
	handlers map[bool]*sdk.StreamableHTTPHandler // by whether the answer is a stream of events
	server   *sdk.Server

	settings atomic.Pointer[Settings]
	rates    quota.Windows[string]
	asked    questions

	mu    sync.Mutex // guards offer, and that server has its tools
	offer *offer     // the last one
}

// Caller is the client of a request.
type Caller struct {
	User    user.User
	Vouched bool     // the user is verified
	Scopes  []string // granted tool scopes
	Key     string   // the id of its credentials, or of its address without any; may be empty
}

// Keys of values in a request's context: the Caller, and the context that ends when it leaves, because the SDK detaches
// handlers from that.
type callerKey struct{}
type leavingKey struct{}

func with(ctx context.Context, from Caller) context.Context {
	return context.WithValue(context.WithValue(ctx, callerKey{}, from), leavingKey{}, ctx)
}

// New returns a Server.
func New(o Options) *Server {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Server{opts: o, offer: &offer{}, handlers: map[bool]*sdk.StreamableHTTPHandler{}}
	s.server = sdk.NewServer(&sdk.Implementation{Name: "voicegw", Version: o.Version}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: o.Changes},
			Resources: &sdk.ResourceCapabilities{ListChanged: o.Changes}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
			c.TTLMs, c.CacheScope = cacheMS, "private" // callers see different tools
		},
	})
	s.server.AddReceivingMiddleware(s.filter)
	s.Reconfigure(o.Settings)
	for _, parts := range []bool{false, true} {
		// The gateway checks Host, Origin and the body's size.
		s.handlers[parts] = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: !parts, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1})
	}
	return s
}

// Reconfigure applies settings to later requests.
func (s *Server) Reconfigure(to Settings) {
	to.PerMinute = cmp.Or(to.PerMinute, setting.MCPCalls)
	s.settings.Store(&to)
}

// Serve answers a request of streamable HTTP. Its body must be small. The answer is a stream of events if parts is
// true, for a client that wants progress, otherwise JSON. A call ends with the request, unless the ledger needs its end.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, from Caller, parts bool) {
	s.handlers[parts].ServeHTTP(w, r.WithContext(with(r.Context(), from)))
}

// Run serves one client over a pair of streams, such as standard input and output, until ctx or the input ends.
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser, from Caller) error {
	s.Refresh()
	w := &replies{WriteCloser: out}
	reader := struct {
		io.Reader
		io.Closer
	}{newLines(in, func(line []byte, err error) []byte { return s.message(w, line, err) }), in}
	err := s.server.Run(with(ctx, from), &sdk.IOTransport{Reader: reader, Writer: w})
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// replies writes whole messages. It is safe for concurrent use.
type replies struct {
	io.WriteCloser
	mu sync.Mutex
}

// Write writes one message.
func (r *replies) Write(message []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.WriteCloser.Write(message)
}

// message returns a line of a client, unless the SDK would end the connection because of it; then it gets an error.
func (s *Server) message(w io.Writer, line []byte, err error) []byte {
	var all []json.RawMessage
	if err == nil && !json.Valid(line) {
		err = errNoJSON
	} else if json.Unmarshal(line, &all) != nil {
		all = []json.RawMessage{line}
	} else if len(all) == 0 || !s.batches() {
		err = errBatch
	}
	ids := map[jsonrpc.ID]bool{}
	for i := 0; i < len(all) && err == nil; i++ {
		var m jsonrpc.Message
		if m, err = jsonrpc.DecodeMessage(all[i]); err != nil {
			continue
		}
		if req, is := m.(*jsonrpc.Request); is && req.ID.IsValid() {
			if ids[req.ID] {
				err = errSameID
			}
			ids[req.ID] = true
		}
	}
	if err == nil {
		return line
	}
	s.opts.Logger.Warn("the MCP client wrote a line that cannot be used", "error", err)
	code, text := jsonrpc.CodeParseError, "The line cannot be used: "+err.Error()
	if errors.Is(err, errBatch) || errors.Is(err, errSameID) {
		code = jsonrpc.CodeInvalidRequest
	}
	answer, _ := document.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text}})
	_, _ = w.Write(append(answer, '\n')) // without the client, the input ends too
	return nil
}

var (
	errBatch  = errors.New("a batch of messages is allowed in versions 2024-11-05 and 2025-03-26 only, and not empty")
	errNoJSON = errors.New("it is not JSON")
	errSameID = errors.New("requests of a batch have the same id")
)

// batches reports whether the client's version has batches.
func (s *Server) batches() bool {
	for session := range s.server.Sessions() {
		if p := session.InitializeParams(); p != nil {
			return p.ProtocolVersion == "2024-11-05" || p.ProtocolVersion == "2025-03-26"
		}
	}
	return false
}

// offer are the offered tools of a version.
type offer struct {
	// Fixed after current.
	s        *Server
	tools    *registry.Snapshot // of the gateway
	settings *Settings
	ids      []string // of the offered tools
}

// Refresh offers the tools of the current snapshot, which otherwise waits for the next request.
func (s *Server) Refresh() { s.current() }

func (s *Server) current() *offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	tools, settings := s.opts.Tools(), s.settings.Load()
	if s.offer.tools == tools && s.offer.settings == settings {
		return s.offer
	}
	o := &offer{s: s, tools: tools, settings: settings, ids: settings.Expose}
	if len(o.ids) == 0 {
		for _, t := range tools.Tools(spec.ModeText) {
			if !t.Writes() && t.Job == nil && !t.RequiresConfirmation && len(t.ConfirmWhen) == 0 &&
				!slices.Contains(s.opts.Rules.Confirm, t.ToolID) {
				o.ids = append(o.ids, t.ToolID)
			}
		}
	}
	o.ids = slices.DeleteFunc(slices.Clone(o.ids), func(id string) bool {
		t, ok := tools.Tool(id)
		return !ok || Unfit(t) != ""
	})
	for _, id := range s.offer.ids {
		if !slices.Contains(o.ids, id) {
			s.server.RemoveTools(id)
			s.server.RemoveResources(guideURI(id))
		}
	}
	for _, id := range o.ids {
		t, _ := tools.Tool(id)
		s.server.AddTool(toolOf(t), s.call)
		s.server.AddResource(guideOf(t), s.guide)
	}
	s.offer = o
	return o
}

// cacheMS is how long clients may use a list again.
const cacheMS = 10_000

// Unfit returns why a tool cannot be offered to MCP clients; empty if it can.
func Unfit(t *registry.Tool) string {
	switch {
	case t.ToolID == spec.DescribeTool, t.ToolID == spec.AgentSwitch, t.ToolID == spec.ConfirmAction:
		return "it belongs to conversations with the gateway"
	case !t.Allows(spec.ModeText):
		return "it is only for voice"
	case t.Job != nil:
		return "it starts jobs, which report to a conversation"
	case t.ByClient(), t.Needs(spec.ModeText, reflect.TypeFor[registry.Inviter]()):
		return "it needs the client of a conversation"
	}
	return ""
}

func toolOf(t *registry.Tool) *sdk.Tool {
	writes := t.Writes()
	destructive, open := writes && t.RequiresConfirmation, t.SideEffects != spec.SideEffectsNone
	title := cmp.Or(t.Title, strings.ToUpper(t.ToolID[:1])+strings.ReplaceAll(t.ToolID[1:], "_", " "))
	description := t.Description
	if !strings.HasPrefix(description, t.Summary) {
		description = t.Summary + " " + description
	}
	return &sdk.Tool{Name: t.ToolID, Title: title, Description: description, InputSchema: t.Parameters,
		OutputSchema: registry.EnvelopeSchema(), Annotations: &sdk.ToolAnnotations{Title: title, ReadOnlyHint: !writes,
			IdempotentHint: t.Idempotent, DestructiveHint: &destructive, OpenWorldHint: &open}}
}

func guideURI(id string) string { return "voicegw://tools/" + id + guideSuffix }

const guideSuffix = "/guide.md"

func guideOf(t *registry.Tool) *sdk.Resource {
	return &sdk.Resource{URI: guideURI(t.ToolID), Name: t.ToolID + "-guide", MIMEType: "text/markdown",
		Description: prompts.GuideOf(t.ToolID), Size: int64(len(t.Guide))}
}

// view is what one caller sees in a request.
type view struct {
	*offer
	from    Caller
	session registry.Session
	mine    *registry.Snapshot // the tools that a conversation of the caller has
}

func (o *offer) view(ctx context.Context) view {
	v := view{offer: o}
	v.from, _ = ctx.Value(callerKey{}).(Caller) // set by Serve and Run
	v.session = registry.Session{UserID: v.from.User.String(), Vouched: v.from.Vouched, Scopes: v.from.Scopes,
		Agent: o.s.opts.Agent, Mode: spec.ModeText}
	v.mine = o.tools.Draw(v.session.UserID, nil).For(registry.Selection{Session: v.session, Live: o.s.opts.Live})
	return v
}

// tool returns an offered tool of the caller, even outside its times.
func (v view) tool(id string) (*registry.Tool, bool) {
	t, ok := v.mine.Tool(id)
	return t, ok && slices.Contains(v.ids, id)
}

// filter hides the tools that a caller may not use: lists lack them, and calls of them are calls of unknown tools.
func (s *Server) filter(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "tools/list", "tools/call", "resources/list", "resources/read":
		default:
			return next(ctx, method, req)
		}
		v := s.current().view(ctx)
		switch p := req.GetParams().(type) {
		case *sdk.CallToolParamsRaw:
			if _, ok := v.tool(p.Name); !ok {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown tool " + p.Name}
			}
		case *sdk.ReadResourceParams:
			if _, ok := v.tool(guided(p.URI)); !ok {
				return nil, sdk.ResourceNotFoundError(p.URI)
			}
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		switch res := res.(type) {
		case *sdk.ListToolsResult:
			res.Meta = v.meta()
			res.Tools = slices.DeleteFunc(res.Tools, func(t *sdk.Tool) bool { return !v.lists(t.Name) })
			for i, t := range res.Tools {
				own, _ := v.mine.Tool(t.Name)
				res.Tools[i] = toolOf(own)
			}
		case *sdk.ListResourcesResult:
			res.Resources = slices.DeleteFunc(res.Resources, func(r *sdk.Resource) bool { return !v.lists(guided(r.URI)) })
		}
		return res, nil
	}
}

func (v view) lists(id string) bool {
	return slices.ContainsFunc(v.mine.Tools(spec.ModeText), func(t *registry.Tool) bool { return t.ToolID == id })
}

// guided returns the tool of a guide's URI; empty for another URI.
func guided(uri string) string {
	id, tool := strings.CutPrefix(uri, "voicegw://tools/")
	id, guide := strings.CutSuffix(id, guideSuffix)
	if !tool || !guide {
		return ""
	}
	return id
}

func (v view) meta() sdk.Meta { return sdk.Meta{"voicegw/registryVersion": v.tools.Version()} }

func (s *Server) guide(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	v := s.current().view(ctx)
	t, ok := v.tool(guided(req.Params.URI))
	if !ok {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	return &sdk.ReadResourceResult{Meta: v.meta(), Contents: []*sdk.ResourceContents{{URI: req.Params.URI, Text: t.Guide}}}, nil
}

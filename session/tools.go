package session

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"voicegw/orchestrator"
	"voicegw/registry"
	"voicegw/session/wsclient"
	"voicegw/transport"
)

// maxParallelTools is how many tools of one session run at once; others wait.
const maxParallelTools = 4

// toolRunner runs the tools of one session, away from the goroutines that move
// audio.
type toolRunner struct {
	// Fixed after newToolRunner.
	tools    *registry.Snapshot // nil where there are none
	finished func(orchestrator.ToolFinished)
	ctx      func() context.Context // ends every tool
	slots    chan struct{}          // a place for each tool that runs

	wg sync.WaitGroup // all tools, also those that wait

	mu      sync.Mutex // guards cancels
	cancels map[string]context.CancelFunc
}

func newToolRunner(ctx context.Context, tools *registry.Snapshot, finished func(orchestrator.ToolFinished)) *toolRunner {
	return &toolRunner{
		tools: tools, finished: finished, ctx: func() context.Context { return ctx },
		slots: make(chan struct{}, maxParallelTools), cancels: make(map[string]context.CancelFunc),
	}
}

// version is that of the registry which the session holds.
func (r *toolRunner) version() string {
	if r.tools == nil {
		return ""
	}
	return r.tools.Version()
}

// category is a tool's, empty for one that does not exist.
func (r *toolRunner) category(tool string) string {
	if r.tools == nil {
		return ""
	}
	t, ok := r.tools.Tool(tool)
	if !ok {
		return ""
	}
	return string(t.Category)
}

// run starts a tool; finished is called once, from another goroutine.
func (r *toolRunner) run(call string, tool string, args json.RawMessage, session registry.Session, caps ...any) {
	ctx, cancel := context.WithCancel(r.ctx())
	r.mu.Lock()
	r.cancels[call] = cancel
	r.mu.Unlock()
	r.wg.Go(func() {
		defer func() {
			r.mu.Lock()
			delete(r.cancels, call)
			r.mu.Unlock()
			cancel()
		}()
		if r.tools == nil {
			r.finished(orchestrator.ToolFinished{Call: call, Envelope: registry.NotFound(tool, "", 0)})
			return
		}
		select {
		case r.slots <- struct{}{}:
			defer func() { <-r.slots }()
		case <-ctx.Done():
		}
		done := orchestrator.ToolFinished{Call: call, Envelope: r.tools.Execute(ctx, tool, registry.ModeVoice, args, session, caps...)}
		if t, ok := r.tools.Tool(tool); ok {
			done.Scheduling = transport.Scheduling(t.Scheduling)
		}
		r.finished(done)
	})
}

// cancel stops a tool whose spec says that it can be stopped.
func (r *toolRunner) cancel(call, tool string) {
	if r.tools == nil {
		return
	}
	if t, ok := r.tools.Tool(tool); !ok || !t.Cancellable {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.cancels[call]; cancel != nil {
		cancel()
	}
}

// declarations are the tools of a mode, in the form that a model takes.
func declarations(tools *registry.Snapshot, form transport.SchemaForm) []transport.Tool {
	if tools == nil {
		return nil
	}
	var out []transport.Tool
	for _, t := range tools.Tools(registry.ModeVoice) {
		params := t.Forms.OpenAI
		if form == transport.SchemaOpenAPI {
			params = t.Forms.Gemini
		}
		out = append(out, transport.Tool{
			Name: t.ToolID, Description: t.Description, Parameters: params, NonBlocking: t.Behavior == registry.BehaviorNonBlocking,
		})
	}
	return out
}

// toolSession is what a tool may know of this session.
func (s *session) toolSession(turn int) registry.Session {
	return registry.Session{
		ID: s.id, UserID: userOf(s.start, s.addr), ConversationID: s.start.ConversationID, Agent: s.opts.Agent.Name,
		Mode: registry.ModeVoice, Turn: turn, Now: time.Now().UTC(),
	}
}

// messenger lets a tool speak to the session's client. It is a capability of
// tools: it may be used from any goroutine, also after the session.
type messenger struct{ s *session }

// Timeout tells the client that its user is shut out.
func (m messenger) Timeout(until time.Time, d time.Duration, message string) {
	m.s.tell(&wsclient.Timeout{TimeoutUntil: until.UnixMilli(), DurationSeconds: int(d.Seconds()), Message: message})
}

// runTool carries out orchestrator.RunTool. mu is held.
func (s *session) runTool(a orchestrator.RunTool) {
	s.tools.run(a.Call, a.Tool, a.Args, s.toolSession(a.Turn), registry.Messenger(messenger{s}))
}

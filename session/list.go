package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/conversation"
	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/store"
	"voicegw/transport"
)

// Running is a running session in an operator's view. Nodes exchange its JSON form.
type Running struct {
	ID, User, Agent string
	// AgentVersion is the version of the agent's document; empty for a configured agent.
	AgentVersion string
	// ConversationID is the conversation that the session continues; empty without one.
	ConversationID  string
	Provider, Model string
	// StartedAt is UTC.
	StartedAt time.Time
	// Principal let the client in; with a ticket, it is the ticket's creator.
	Principal auth.Principal `json:"-"`
	// Turn is the number of turns so far.
	Turn  int
	Phase orchestrator.Phase
	// Away: the client is absent and may return.
	Away bool
	// Cost is the session's cost so far, on all gateways.
	Cost cost.Amount
	// ModelAddr is the local host:port of the connection to the model; empty without one or if unknown.
	ModelAddr string `json:"-"`
}

// Away returns the number of running sessions without a client.
func (m *Manager) Away() int { return len(m.roster.away()) }

// Sessions lists the sessions that run on this node, oldest first.
func (m *Manager) Sessions() []Running {
	all := m.roster.all()
	list := make([]Running, 0, len(all))
	for _, s := range all {
		list = append(list, s.running())
	}
	slices.SortFunc(list, func(a, b Running) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Session returns the session with that id, if it runs on this node.
func (m *Manager) Session(id string) (Running, bool) {
	s := m.roster.get(id)
	if s == nil {
		return Running{}, false
	}
	return s.running(), true
}

// Provider is an available provider.
type Provider struct {
	Name string
	// Model is the name of the provider's model; empty if it is not known.
	Model string
	// Voices are the documented voices, the default first; nil if unknown. Voice is the configured one; maybe empty.
	Voices []string
	Voice  string
}

// Providers lists the available providers; the first is the default.
func (m *Manager) Providers() []Provider {
	names := slices.Sorted(maps.Keys(m.options().Transports))
	first := slices.Index(names, m.options().Provider)
	var list []Provider
	for _, name := range slices.Insert(slices.Delete(names, first, first+1), 0, m.options().Provider) {
		t := m.options().Transports[name]
		list = append(list, Provider{Name: name, Model: t.Model(), Voices: t.Voices(""), Voice: m.options().Agent.Voices[name]})
	}
	return list
}

func (s *session) running() Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.model.link().info()
	r := Running{
		ID: s.id, User: s.user.String(), Agent: s.agent.Load().Name, AgentVersion: s.agent.Load().Version,
		ConversationID: s.start.ConversationID,
		Provider:       info.Provider, Model: info.Model, StartedAt: s.startedAt, Turn: s.state.Turns(),
		Phase: s.state.Phase(), Away: s.client.attachment() == nil,
		Principal: s.principal.Value(), Cost: s.state.Spent(),
	}
	if !s.isOver() {
		r.ModelAddr = info.LocalAddr
	}
	return r
}

// Census counts a Manager's sessions at one moment.
type Census struct {
	// Sessions are the running sessions, Most is their limit.
	Sessions, Most int
	// Attached and Detached count the sessions with and without a client by provider, Linked those with a connection to
	// the model. Each configured provider has an entry.
	Attached, Detached, Linked map[string]int
	// Backlog is the longest audio queued for one client.
	Backlog time.Duration
	// Waiting connections have not sent session.start; Carried ones belong to sessions of other nodes.
	Waiting, Carried int
	Draining         bool
	Moved            int // sessions handed over to another process since the drain began
}

// Census takes no lock of a step, so no session waits for it. The counts may change while it runs.
func (m *Manager) Census() Census {
	c := Census{Most: m.options().Limits.Sessions, Attached: map[string]int{}, Detached: map[string]int{}, Linked: map[string]int{}}
	for name := range m.options().Transports {
		c.Attached[name], c.Detached[name], c.Linked[name] = 0, 0, 0
	}
	all := m.roster.all()
	m.mu.Lock()
	c.Sessions, c.Carried, c.Draining, c.Moved = m.running, m.carrying, m.draining, m.moved
	c.Waiting = max(len(m.admitted)-m.running-m.carrying, 0)
	m.mu.Unlock()
	for _, s := range all {
		l := s.model.link()
		who := l.info().Provider
		if s.client.attachment() == nil {
			c.Detached[who]++
		} else {
			c.Attached[who]++
		}
		if !l.isOver.Load() {
			c.Linked[who]++
		}
		c.Backlog = max(c.Backlog, s.down.Backlog())
	}
	return c
}

// Prompt is the setup of a session's model, as a new connection would get it.
type Prompt struct {
	Agent, AgentVersion    string
	Provider, Model, Voice string // an empty Model or Voice is the provider's own
	Language               string // BCP 47; empty lets the model choose
	// Instructions is the whole system text without the secret mark of the gateway's own messages.
	Instructions string
	// Tools have the model's form.
	Tools []transport.Tool
}

// ErrNoModel means that the session has no model yet, or is over.
var ErrNoModel = errors.New("session: no model yet, or the session is over")

// Prompt returns the setup of the session with that id. The error is ErrNotHere or ErrNoModel.
func (m *Manager) Prompt(id string) (Prompt, error) {
	s := m.roster.get(id)
	if s == nil {
		return Prompt{}, ErrNotHere
	}
	r := s.model.redial.Load()
	if r == nil {
		return Prompt{}, ErrNoModel
	}
	setup := r.setup(r.provider)
	text := setup.Instructions
	if code := r.mark.Code(); code != "" {
		text = strings.ReplaceAll(text, code, "…")
	}
	return Prompt{
		Agent: r.agent.Name, AgentVersion: r.agent.Version, Provider: r.provider, Model: setup.Model, Voice: setup.Voice,
		Language:     setup.Language,
		Instructions: text, Tools: setup.Tools,
	}, nil
}

// Jobs is the session's access to long-running jobs that calls have started; *jobs.Runner implements it.
type Jobs interface {
	// Job returns a job with its result.
	Job(ctx context.Context, id string) (store.Job, error)
	// Told records that the conversation was informed of the job's end. Only the first of concurrent callers gets true.
	Told(ctx context.Context, id string) (first bool, err error)
}

// jobReports tracks the session's finished jobs.
type jobReports struct {
	reading atomic.Bool // a goroutine reads them

	// Guarded by the session's mu.
	source   Jobs            // nil until a job has ended
	reported map[string]bool // jobs whose end this process reported to the model; nil before the first
}

const jobTime = 5 * time.Second

// JobsEnded informs the sessions here of finished jobs, of all unreported ones. The caller repeats it until Jobs.Told.
func (m *Manager) JobsEnded(owed []store.Job, from Jobs) {
	of := map[string][]string{} // ids by conversation
	for _, j := range owed {
		of[j.Conversation] = append(of[j.Conversation], j.ID)
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	for _, s := range m.roster.sessions {
		ids := of[cmp.Or(s.start.ConversationID, s.id)]
		if len(ids) == 0 || !s.jobs.reading.CompareAndSwap(false, true) {
			continue
		}
		s.visitors.Go(func() {
			defer s.jobs.reading.Store(false)
			for _, id := range ids {
				s.jobs.ended(s, id, from)
			}
		})
	}
}

// JobProgressed sends a job's progress to the client of its conversation's session on this node. It does not wait.
func (m *Manager) JobProgressed(j store.Job) {
	if j.Progress == nil {
		return
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	for _, s := range m.roster.sessions {
		if cmp.Or(s.start.ConversationID, s.id) == j.Conversation && conversation.Owned(j.User, j.Conversation, s.user) {
			s.send(&protocol.JobProgress{JobID: j.ID, Tool: j.Tool, Name: j.Name, Text: j.Progress.Text, Fraction: j.Progress.Fraction})
		}
	}
}

func (r *jobReports) ended(s *session, id string, from Jobs) {
	ctx, cancel := context.WithTimeout(s.context(), jobTime)
	defer cancel()
	s.mu.Lock()
	r.source = from
	told, waits := r.reported[id], s.state.TellsOf(id)
	s.mu.Unlock()
	switch {
	case told:
		r.note(ctx, s, id)
		return
	case waits:
		return
	}
	j, err := from.Job(ctx, id)
	switch {
	case errors.Is(err, store.ErrUnknown), s.isOver():
		return
	case err != nil:
		s.log().Warn("a finished job could not be read; will retry", "job", id, "error", err)
		return
	case !j.Owed(), !conversation.Owned(j.User, j.Conversation, s.user):
		return
	}
	s.dispatch(orchestrator.JobEnded{Job: j.ID, Tool: j.Tool, Name: j.Name, Result: j.Result})
}

func (r *jobReports) note(ctx context.Context, s *session, id string) {
	source := locked(s, func() Jobs { return r.source })
	if _, err := source.Told(ctx, id); err != nil && !errors.Is(err, store.ErrUnknown) {
		s.log().Warn("a job could not be marked as reported; will retry", "job", id, "error", err)
	}
}

// markReported records that the model knows of a job's end. The caller must hold mu.
func (r *jobReports) markReported(s *session, a orchestrator.JobTold) {
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[a.Job] = true
	s.log().Info("the end of a job was reported to the model", "job", a.Job)
	if r.source == nil {
		return // an earlier process queued it; JobsEnded records it
	}
	s.client.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.context()), jobTime)
		defer cancel()
		r.note(ctx, s, a.Job)
	})
}

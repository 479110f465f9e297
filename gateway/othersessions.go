package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"voicegw/session"
	"voicegw/store"
)

// Directory lists which gateway runs which voice session; *store.Directory implements it.
type Directory interface {
	List(ctx context.Context) ([]store.SessionRecord, error)
	Find(ctx context.Context, id string) (store.SessionRecord, error)
}

// Nodes lists the gateways; *store.Nodes implements it.
type Nodes interface {
	List(ctx context.Context) ([]store.Node, error)
	Gone(ctx context.Context, id string) (bool, error)
}

// Peers controls the sessions of other gateways. Errors wrap store.ErrUnknown if the session no longer runs there.
type Peers interface {
	EndSession(ctx context.Context, node store.Node, session string) error
	SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error
	Prompt(ctx context.Context, node store.Node, id string) (session.Prompt, error)
	Session(ctx context.Context, node store.Node, id string) (session.Running, error)
}

type otherLine struct {
	sessionLine
	Away     bool   `json:"away,omitempty"`
	Moving   bool   `json:"moving,omitempty"`
	Node     string `json:"node"`
	NodeGone bool   `json:"node_gone,omitempty"`
	EndedAt  string `json:"ended_at,omitempty"`
}

func otherLineOf(r store.SessionRecord) otherLine {
	l := otherLine{
		sessionLine: sessionLine{r.ID, r.User, r.Agent, r.AgentVersion, r.Conversation, r.Provider, r.Model,
			r.StartedAt.UTC().Format(timeForm)},
		Away: r.State == store.SessionDetached, Moving: r.State == store.SessionMoving, Node: r.Node,
	}
	if !r.EndedAt.IsZero() {
		l.EndedAt = r.EndedAt.UTC().Format(timeForm)
	}
	return l
}

type thereLine struct {
	runningLine
	Node string `json:"node"`
}

type nodeLine struct {
	ID       string `json:"id"`
	URL      string `json:"url,omitempty"`
	Version  string `json:"version"`
	Started  string `json:"started_at"`
	Draining bool   `json:"draining,omitempty"`
	Sessions int    `json:"sessions"`
}

const othersTime = 5 * time.Second

func (s operatorAPI) others(ctx context.Context) (lines []otherLine, nodes []nodeLine, err error) {
	if s.opts.Directory == nil || s.opts.Nodes == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	all, err := s.opts.Nodes.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := map[string]bool{}
	for _, n := range all {
		there[n.ID] = true
		nodes = append(nodes, nodeLine{ID: n.ID, URL: n.URL, Version: n.Version, Started: n.Started.UTC().Format(timeForm),
			Draining: n.Draining, Sessions: n.Sessions})
	}
	records, err := s.opts.Directory.List(ctx)
	if err != nil {
		return nil, nodes, err
	}
	for _, r := range records {
		if _, here := s.opts.Sessions.Session(r.ID); here {
			continue
		}
		line := otherLineOf(r)
		line.NodeGone = !there[r.Node]
		lines = append(lines, line)
	}
	return lines, nodes, nil
}

func (s operatorAPI) endSession(w http.ResponseWriter, r *http.Request) *problem {
	id := r.PathValue("id")
	if s.opts.Sessions.End(id) {
		s.opts.Logger.Info("a session was ended by an operator", "session_id", id)
		return done(w, http.StatusNoContent)
	}
	if err := s.elsewhere(r.Context(), id, s.endThere); err != nil {
		return s.elsewhereFailed("runs", "ending a session failed", err)
	}
	s.opts.Logger.Info("a session of another gateway was ended by an operator", "session_id", id)
	return done(w, http.StatusNoContent)
}

// elsewhereFailed answers a failed request for another gateway's session. is is "is" or "runs".
func (s operatorAPI) elsewhereFailed(is, what string, err error) *problem {
	var elsewhere *elsewhereError
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, session.ErrNoSession):
		return refusal(http.StatusNotFound, "session_unknown", "No running session has that id; see GET /v1/sessions.")
	case errors.As(err, &elsewhere):
		return refusal(http.StatusConflict, "session_elsewhere", "The session "+is+" on the gateway "+elsewhere.node+
			", which this gateway cannot reach; send the request there.")
	default:
		return s.storeFailed(what, err)
	}
}

type elsewhereError struct{ node string }

func (e *elsewhereError) Error() string { return "the session runs on " + e.node }

// recorded calls do with the record of a session on any gateway. The error wraps store.ErrUnknown for an unknown session.
func (s operatorAPI) recorded(ctx context.Context, id string,
	do func(context.Context, store.SessionRecord) error) error {
	if s.opts.Directory == nil || s.opts.Nodes == nil {
		return store.ErrUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	found, err := s.opts.Directory.Find(ctx, id)
	if err != nil {
		return err
	}
	return do(ctx, found)
}

// elsewhere is recorded without the sessions that are over.
func (s operatorAPI) elsewhere(ctx context.Context, id string, do func(context.Context, store.SessionRecord) error) error {
	return s.recorded(ctx, id, func(ctx context.Context, found store.SessionRecord) error {
		if found.State == store.SessionOver {
			return store.ErrUnknown
		}
		return do(ctx, found)
	})
}

// endThere asks a session's gateway to end it or, if that gateway is gone, takes the session over and ends it.
func (s operatorAPI) endThere(ctx context.Context, found store.SessionRecord) error {
	gone, err := s.opts.Nodes.Gone(ctx, found.Node)
	if err != nil {
		return err
	}
	if gone || found.State == store.SessionMoving {
		return s.opts.EndLost(ctx, found)
	}
	return s.atNode(ctx, found.Node, func(n store.Node) error { return s.opts.Peers.EndSession(ctx, n, found.ID) })
}

// atNode sends a request to a gateway. The error is an elsewhereError if it is unreachable.
func (s operatorAPI) atNode(ctx context.Context, id string, ask func(store.Node) error) error {
	all, err := s.opts.Nodes.List(ctx)
	if err != nil {
		return err
	}
	for _, n := range all {
		if n.ID == id && s.opts.Peers != nil && n.URL != "" {
			return ask(n)
		}
	}
	return &elsewhereError{node: id}
}

// showThere describes a session as its gateway reports it, or else as stored.
func (s operatorAPI) showThere(ctx context.Context, id string) (line any, err error) {
	err = s.recorded(ctx, id, func(ctx context.Context, found store.SessionRecord) (err error) {
		if !sees(ctx, found.User) {
			return store.ErrUnknown
		}
		known := otherLineOf(found)
		if found.State != store.SessionOver {
			known.NodeGone, err = s.opts.Nodes.Gone(ctx, found.Node)
		}
		line = known
		if err != nil || found.State == store.SessionOver || known.NodeGone || known.Moving {
			return err
		}
		err = s.atNode(ctx, found.Node, func(n store.Node) error {
			is, err := s.opts.Peers.Session(ctx, n, id)
			if err == nil {
				line = thereLine{lineOf(is), found.Node}
			}
			return err
		})
		if err != nil {
			s.opts.Logger.Debug("another gateway did not describe its session", "session_id", id, "node", found.Node, "error", err)
		}
		return nil
	})
	return line, err
}

func (s operatorAPI) switchAgent(w http.ResponseWriter, r *http.Request) *problem {
	var body struct {
		Agent  string `json:"agent"`
		Reason string `json:"reason"`
	}
	if no := readBody(w, r, &body, true); no != nil {
		return no
	}
	if body.Agent == "" {
		return invalid("agent is missing; see GET /v1/agents.")
	}
	id := r.PathValue("id")
	err := s.opts.Sessions.SwitchAgent(id, body.Agent, body.Reason)
	if errors.Is(err, session.ErrNotHere) {
		err = s.elsewhere(r.Context(), id, func(ctx context.Context, found store.SessionRecord) error {
			return s.atNode(ctx, found.Node, func(n store.Node) error {
				return s.opts.Peers.SwitchAgent(ctx, n, id, body.Agent, body.Reason)
			})
		})
	}
	switch {
	case err == nil:
		s.opts.Logger.Info("an operator switched a session's agent", "session_id", id, "agent", body.Agent)
		return done(w, http.StatusAccepted)
	case errors.Is(err, session.ErrAgent) && !s.opts.Sessions.HasAgent(body.Agent):
		return s.unknownAgent(body.Agent)
	case errors.Is(err, session.ErrAgent):
		return refusal(http.StatusConflict, "agent_cannot",
			"The session cannot switch to this agent: "+session.WhyNot(err)+".")
	default:
		return s.elsewhereFailed("is", "switching a session's agent failed", err)
	}
}

type shownPrompt struct {
	SessionID    string       `json:"session_id"`
	Agent        string       `json:"agent"`
	AgentVersion string       `json:"agent_version,omitempty"`
	Provider     string       `json:"provider"`
	Model        string       `json:"model,omitempty"`
	Voice        string       `json:"voice,omitempty"`
	Language     string       `json:"language,omitempty"`
	Instructions string       `json:"instructions"`
	Tools        []promptTool `json:"tools"`
}

type promptTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func (s operatorAPI) showPrompt(w http.ResponseWriter, r *http.Request) *problem {
	id := r.PathValue("id")
	p, err := s.prompt(r.Context(), id)
	switch {
	case err == nil:
		return answer(w, http.StatusOK, shown(id, p))
	case errors.Is(err, session.ErrNoModel):
		return refusal(http.StatusConflict, "session_connecting",
			"The session is not connected to a model; try again in a moment.")
	default:
		return s.elsewhereFailed("is", "reading a session's prompt failed", err)
	}
}

// prompt's error wraps store.ErrUnknown or session.ErrNoModel, or is an elsewhereError.
func (s operatorAPI) prompt(ctx context.Context, id string) (p session.Prompt, err error) {
	if running, here := s.opts.Sessions.Session(id); here {
		if !sees(ctx, running.User) {
			return p, store.ErrUnknown
		}
		if p, err = s.opts.Sessions.Prompt(id); !errors.Is(err, session.ErrNotHere) {
			return p, err
		}
	}
	err = s.elsewhere(ctx, id, func(ctx context.Context, found store.SessionRecord) error {
		if !sees(ctx, found.User) {
			return store.ErrUnknown
		}
		return s.atNode(ctx, found.Node, func(n store.Node) error {
			p, err = s.opts.Peers.Prompt(ctx, n, id)
			return err
		})
	})
	return p, err
}

func shown(id string, p session.Prompt) shownPrompt {
	out := shownPrompt{
		SessionID: id, Agent: p.Agent, AgentVersion: p.AgentVersion, Provider: p.Provider, Model: p.Model, Voice: p.Voice,
		Language: p.Language, Instructions: p.Instructions, Tools: []promptTool{},
	}
	for _, t := range p.Tools {
		out.Tools = append(out.Tools, promptTool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}

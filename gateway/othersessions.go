package gateway

import (
	"context"
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
	// EndSession starts ending a voice session.
	EndSession(ctx context.Context, node store.Node, session string) error
	// SwitchAgent switches a voice session to another agent. The error may also wrap session.ErrAgent.
	SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error
	// Prompt returns the current prompt of a voice session. The error may also wrap session.ErrNoModel.
	Prompt(ctx context.Context, node store.Node, id string) (session.Prompt, error)
	// Session returns a voice session.
	Session(ctx context.Context, node store.Node, id string) (session.Running, error)
}

type otherLine struct {
	ID             string `json:"id"`
	User           string `json:"user"`
	Agent          string `json:"agent"`
	AgentVersion   string `json:"agent_version,omitempty"`
	ConversationID string `json:"conversation_id,omitempty"`
	Provider       string `json:"provider"`
	Model          string `json:"model"`
	StartedAt      string `json:"started_at"`
	Away           bool   `json:"away,omitempty"`
	Moving         bool   `json:"moving,omitempty"`
	Node           string `json:"node"`
	NodeGone       bool   `json:"node_gone,omitempty"`
	EndedAt        string `json:"ended_at,omitempty"`
}

func otherLineOf(r store.SessionRecord) otherLine {
	l := otherLine{
		ID: r.ID, User: r.User, Agent: r.Agent, AgentVersion: r.AgentVersion, ConversationID: r.Conversation,
		Provider: r.Provider, Model: r.Model,
		StartedAt: r.StartedAt.UTC().Format(timeForm), Away: r.State == store.SessionDetached,
		Moving: r.State == store.SessionMoving, Node: r.Node,
	}
	if !r.EndedAt.IsZero() {
		l.EndedAt = r.EndedAt.UTC().Format(timeForm)
	}
	return l
}

// thereLine is another gateway's session as that gateway reports it.
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

// othersTime limits requests to the store and to other gateways.
const othersTime = 5 * time.Second

// others returns the sessions of other gateways, and all gateways.
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

// endSession ends a voice session on any gateway.
func (s operatorAPI) endSession(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if s.opts.Sessions.End(id) {
		s.opts.Logger.Info("a session was ended by an operator", "session_id", id)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := s.elsewhere(r.Context(), id, s.endThere); err != nil {
		s.elsewhereFailed(w, "runs", "ending a session failed", err)
		return
	}
	s.opts.Logger.Info("a session of another gateway was ended by an operator", "session_id", id)
	w.WriteHeader(http.StatusNoContent)
}

// elsewhereFailed answers a failed request for another gateway's session. is is "is" or "runs".
func (s operatorAPI) elsewhereFailed(w http.ResponseWriter, is, what string, err error) {
	var elsewhere *elsewhereError
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, session.ErrNoSession):
		problem(w, http.StatusNotFound, "session_unknown", "No running session has that id; see GET /v1/sessions.")
	case errors.As(err, &elsewhere):
		problem(w, http.StatusConflict, "session_elsewhere", "The session "+is+" on the gateway "+elsewhere.node+
			", which this gateway cannot reach; send the request there.")
	default:
		s.storeFailed(w, what, err)
	}
}

// elsewhereError means that the session's gateway is unreachable.
type elsewhereError struct{ node string }

// Error returns a message with the gateway's name.
func (e *elsewhereError) Error() string { return "the session runs on " + e.node }

// elsewhere calls do for a running session of another gateway. The error wraps store.ErrUnknown if there is none.
func (s operatorAPI) elsewhere(ctx context.Context, id string, do func(context.Context, store.SessionRecord) error) error {
	if s.opts.Directory == nil || s.opts.Nodes == nil {
		return store.ErrUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	found, err := s.opts.Directory.Find(ctx, id)
	if err != nil {
		return err
	}
	if found.State == store.SessionOver {
		return store.ErrUnknown
	}
	return do(ctx, found)
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

// showThere describes another gateway's session, as reported by that gateway or, if that fails or the session is
// over, by the store.
func (s operatorAPI) showThere(ctx context.Context, id string) (line any, err error) {
	if s.opts.Directory == nil || s.opts.Nodes == nil {
		return nil, store.ErrUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, othersTime)
	defer cancel()
	found, err := s.opts.Directory.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !sees(ctx, found.User) {
		return nil, store.ErrUnknown
	}
	known := otherLineOf(found)
	if found.State == store.SessionOver {
		return known, nil
	}
	if known.NodeGone, err = s.opts.Nodes.Gone(ctx, found.Node); err != nil {
		return nil, err
	}
	if known.NodeGone || known.Moving {
		return known, nil
	}
	there := thereLine{Node: found.Node}
	err = s.atNode(ctx, found.Node, func(n store.Node) error {
		is, err := s.opts.Peers.Session(ctx, n, id)
		there.runningLine = lineOf(is)
		return err
	})
	if err != nil {
		s.opts.Logger.Debug("another gateway did not describe its session", "session_id", id, "node", found.Node, "error", err)
		return known, nil
	}
	return there, nil
}

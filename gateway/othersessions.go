package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"voicegw/session"
	"voicegw/store"
)

// Directory says which gateway runs which voice session; *store.Directory implements it.
type Directory interface {
	List(ctx context.Context) ([]store.SessionRecord, error)
	Find(ctx context.Context, id string) (store.SessionRecord, error)
}

// Nodes says which gateways there are; *store.Nodes implements it.
type Nodes interface {
	List(ctx context.Context) ([]store.Node, error)
	Gone(ctx context.Context, id string) (bool, error)
}

// Peers reaches the other gateways.
type Peers interface {
	// EndSession has the node end a voice session, and waits until it has begun to. The error wraps
	// store.ErrUnknown if the session does not run there any more.
	EndSession(ctx context.Context, node store.Node, session string) error
	// SwitchAgent has the node let another agent go on with a voice session. The error wraps
	// store.ErrUnknown if the session does not run there any more, or session.ErrAgent.
	SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error
	// Prompt returns what is in force in a voice session of the node. The error wraps store.ErrUnknown if
	// the session does not run there any more, or session.ErrNoModel.
	Prompt(ctx context.Context, node store.Node, id string) (session.Prompt, error)
	// Session returns a voice session of the node. The error wraps store.ErrUnknown if the session does not run
	// there any more.
	Session(ctx context.Context, node store.Node, id string) (session.Running, error)
}

// otherLine is a session of another gateway in the list.
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
		ID: r.ID, User: r.User, Agent: r.Agent, AgentVersion: r.AgentVersion, ConversationID: r.Conversation, Provider: r.Provider, Model: r.Model,
		StartedAt: r.StartedAt.UTC().Format(timeForm), Away: r.State == store.SessionDetached, Moving: r.State == store.SessionMoving, Node: r.Node,
	}
	if !r.EndedAt.IsZero() {
		l.EndedAt = r.EndedAt.UTC().Format(timeForm)
	}
	return l
}

// thereLine is a session of another gateway as that gateway knows it.
type thereLine struct {
	runningLine
	Node string `json:"node"`
}

// nodeLine is a gateway in the list.
type nodeLine struct {
	ID       string `json:"id"`
	URL      string `json:"url,omitempty"`
	Version  string `json:"version"`
	Started  string `json:"started_at"`
	Draining bool   `json:"draining,omitempty"`
	Sessions int    `json:"sessions"`
}

// othersTime bounds the questions to the store and to other gateways.
const othersTime = 5 * time.Second

// others returns the sessions that do not run here, and all gateways.
func (s *Server) others(ctx context.Context) (lines []otherLine, nodes []nodeLine, err error) {
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
		nodes = append(nodes, nodeLine{ID: n.ID, URL: n.URL, Version: n.Version, Started: n.Started.UTC().Format(timeForm), Draining: n.Draining, Sessions: n.Sessions})
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

// endSession ends a voice session, on whichever gateway it runs.
func (s *Server) endSession(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if s.opts.Sessions.End(id) {
		s.opts.Logger.Info("a session was ended by an operator", "session_id", id)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := s.elsewhere(r.Context(), id, s.endThere); err != nil {
		s.elsewhereFailed(w, "runs", "a session cannot be ended", err)
		return
	}
	s.opts.Logger.Info("a session of another gateway was ended by an operator", "session_id", id)
	w.WriteHeader(http.StatusNoContent)
}

// elsewhereFailed answers a request for a session of another gateway that has failed: the session is, or runs, on
// that one.
func (s *Server) elsewhereFailed(w http.ResponseWriter, is, what string, err error) {
	var elsewhere *elsewhereError
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, session.ErrNoSession):
		problem(w, http.StatusNotFound, "session_unknown", "There is no session of that id, or it is over; GET /v1/sessions lists those that run.")
	case errors.As(err, &elsewhere):
		problem(w, http.StatusConflict, "session_elsewhere", "The session "+is+" on the gateway "+elsewhere.node+", which this one cannot reach; ask that one.")
	default:
		s.storeFailed(w, what, err)
	}
}

// elsewhereError says that a session runs on a gateway that cannot be asked.
type elsewhereError struct{ node string }

// Error names the gateway.
func (e *elsewhereError) Error() string { return "the session runs on " + e.node }

// elsewhere does something with a session that does not run here and is not over. The error wraps
// store.ErrUnknown if the id is of no such session.
func (s *Server) elsewhere(ctx context.Context, id string, do func(context.Context, store.SessionRecord) error) error {
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

// endThere ends a session that does not run here: its gateway is asked to, and if that is gone, this one takes the
// session and ends it.
func (s *Server) endThere(ctx context.Context, found store.SessionRecord) error {
	gone, err := s.opts.Nodes.Gone(ctx, found.Node)
	if err != nil {
		return err
	}
	if gone || found.State == store.SessionMoving {
		return s.opts.EndLost(ctx, found)
	}
	return s.atNode(ctx, found.Node, func(n store.Node) error { return s.opts.Peers.EndSession(ctx, n, found.ID) })
}

// atNode asks the gateway of that id for something. The error is an elsewhereError if it cannot be asked.
func (s *Server) atNode(ctx context.Context, id string, ask func(store.Node) error) error {
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

// showThere shows a session that does not run here: as its gateway knows it or, if that is gone or cannot be asked, or
// if the session has ended in the last minutes, as the store does.
func (s *Server) showThere(ctx context.Context, id string) (line any, err error) {
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
		s.opts.Logger.Debug("another gateway does not show its session", "session_id", id, "node", found.Node, "error", err)
		return known, nil
	}
	return there, nil
}

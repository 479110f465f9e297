package session

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/store"
)

// Lost is a session that no node runs: its node is gone, or has given it up.
type Lost struct {
	Record store.SessionRecord
	// Ended means that the session ran on this node and has ended: only its record could not be written then.
	Ended bool
}

// How often a node looks for lost sessions: three times in the time that a client may stay away,
// and at least every lostMost.
const (
	lostLeast = time.Second
	lostMost  = 10 * time.Second
)

func (o *Options) lostEvery() time.Duration {
	return min(max(o.Policy.ResumeGrace/3, lostLeast), lostMost)
}

// lostKey names a session at one of its owners.
type lostKey struct {
	id    string
	epoch uint64
}

// EndLost ends the sessions that no node runs and to whose clients nothing is owed any more: they were lost
// longer ago than a client may stay away. It returns when ctx is done. Each node of a cluster may run it; one of
// them ends a session, with all that belongs to the end: the conversation, the audit, the usage and the webhook.
func (m *Manager) EndLost(ctx context.Context) {
	if m.options().Cluster == nil {
		return
	}
	since := map[lostKey]time.Time{} // when this node saw first that the session was lost
	next := time.NewTimer(m.options().lostEvery())
	defer next.Stop()
	for {
		since = m.endLost(ctx, since)
		select {
		case <-next.C:
			next.Reset(m.options().lostEvery())
		case <-ctx.Done():
			return
		}
	}
}

// endLost ends the lost sessions whose time is over, and returns since when the others are lost.
func (m *Manager) endLost(ctx context.Context, since map[lostKey]time.Time) map[lostKey]time.Time {
	lost, err := m.options().Cluster.Lost(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.throttle.Info("sessions whose gateways are gone cannot be looked for", "store", "error", err)
		}
		return since
	}
	m.roster.setLost(len(lost))
	now, left := time.Now(), make(map[lostKey]time.Time, len(lost))
	for _, l := range lost {
		key := lostKey{l.Record.ID, l.Record.Epoch}
		from, known := since[key]
		if !known {
			from = now
		}
		switch {
		case m.Draining() || ctx.Err() != nil:
		case l.Ended && m.has(l.Record.ID), now.Sub(from) < m.options().Policy.ResumeGrace:
		default:
			if err := m.endOne(ctx, l, causeGone); err != nil && !errors.Is(err, ErrElsewhere) && !errors.Is(err, ErrNoSession) {
				m.options().Logger.Error("a session whose gateway is gone cannot be ended", "session_id", clip(l.Record.ID), "error", err)
			}
		}
		left[key] = from
	}
	return left
}

// has reports whether something of the session with that id is left on this node.
func (m *Manager) has(id string) bool {
	if m.Holds(id) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.admitted {
		if a.id == id {
			return true
		}
	}
	return false
}

// EndRecorded ends, for an operator, a session that no node runs. found is its record. The error wraps ErrElsewhere if
// another node has the session by now, ErrNoSession if it is over, or store.ErrUnavailable.
func (m *Manager) EndRecorded(ctx context.Context, found store.SessionRecord) error {
	if m.options().Cluster == nil {
		return ErrNoSession
	}
	return m.endOne(ctx, Lost{Record: found}, causeOperator)
}

// endOne ends a session that no node runs, as the node that ran it would have. The error is that of EndRecorded.
func (m *Manager) endOne(ctx context.Context, l Lost, cause *Cause) error {
	leave, first := m.roster.take(l.Record.ID)
	if !first {
		return ErrElsewhere // its client has just come back
	}
	defer leave()
	t, err := m.options().Cluster.Adopt(ctx, l.Record)
	if err != nil {
		return err
	}
	if l.Ended {
		t.Place.Leave()
		return nil
	}
	a := m.AdmitCarried(Visitor{})
	g := &startup{m: m, arrivedAt: time.Now(), entry: EntryTakeover, logger: m.options().Logger.With("session_id", t.Record.ID)}
	g.start = &startMessage{}
	s, err := g.endTaken(ctx, t, cause)
	if err != nil {
		g.leave()
		a.Release()
		t.Place.Leave()
		return err
	}
	s.log().Info("a session that no gateway ran is ended", "reason", cause.Reason, "epoch", t.Record.Epoch, "given", t.handedOver(),
		"checkpoint_age_ms", g.arrivedAt.Sub(t.Checkpoint.At).Milliseconds())
	m.concludeWhenDone(a, s, g)
	return nil
}

// endTaken makes the session that this node has taken, as it was, and ends it.
func (g *startup) endTaken(ctx context.Context, t *Taken, cause *Cause) (*session, error) {
	m := g.m
	at, caps, err := g.prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	at.saved.State.Calls.Questions = nil // their answers come by the API, as after any end
	if _, no := g.adopt(at); no != nil {
		// Its user has gone on without it: the conversation is another session's.
		g.logger.Warn("the conversation of a session that is ended stays as it is", "conversation_id", g.ConversationID, "reason", no.Reason)
	}
	if no := g.meterUsage(true); no != nil {
		return nil, no
	}
	s, err := newSession(g, m.options(), noClient{}, g.noModelOf(t.Record, caps))
	if err != nil {
		return nil, err
	}
	if g.Over == nil {
		s.saver = nil
	}
	s.place = t.Place
	s.watch.follower = g.follow(g.provider, t.Record.Model, "")
	s.event(g.started())
	m.publish(s, g)
	at.end(s, cause)
	return s, nil
}

// end ends a session that another process has run.
func (at *restoring) end(s *session, cause *Cause) {
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	at.settleDraft(s, 0, false)
	s.end(cause)
	at.saved.State.Phase = orchestrator.PhaseEnded // the step asks for no model
	s.step(orchestrator.Restored{Memory: at.saved.State, StartedAt: at.taken.Record.StartedAt, Epoch: at.taken.Record.Epoch, Given: at.taken.handedOver()}, time.Now())
	s.client.attachment().start()
}

// noClient stands for the client of a session that is ended without one.
type noClient struct{}

var errNoClient = errors.New("session: the client has not come back")

func (noClient) Read() (protocol.Frame, error)            { return protocol.Frame{}, errNoClient }
func (noClient) Notify(f func())                          { go f() }
func (noClient) TryRead() (protocol.Frame, bool, error)   { return protocol.Frame{}, false, errNoClient }
func (noClient) CaughtUp() time.Time                      { return time.Time{} }
func (noClient) WriteAudio([]byte) error                  { return errNoClient }
func (noClient) WriteText([]byte) error                   { return errNoClient }
func (noClient) Ready() bool                              { return true }
func (noClient) Gone() bool                               { return true }
func (noClient) KeepAlive(int, int) bool                  { return true }
func (noClient) Close(websocket.StatusCode, string) error { return nil }
func (noClient) Abort()                                   {}

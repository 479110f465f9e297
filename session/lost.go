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

// Lost is a session without a node: its node is gone or has handed it over.
type Lost struct {
	Record store.SessionRecord
	// Ended: the session has ended on this node, but its record could not be written.
	Ended bool
}

// The bounds of the interval of EndLost. It is normally a third of the time that a client may be absent.
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

// EndLost ends sessions without a node whose clients can no longer resume: they were lost longer ago than a client may
// be absent. It returns when ctx is done. Each node of a cluster may run it; one of them ends each session completely,
// with its conversation, audit, usage and webhook.
func (m *Manager) EndLost(ctx context.Context) {
	if m.options().Cluster == nil {
		return
	}
	since := map[lostKey]time.Time{} // when this node first saw the loss
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

func (m *Manager) endLost(ctx context.Context, since map[lostKey]time.Time) map[lostKey]time.Time {
	lost, err := m.options().Cluster.Lost(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.throttle.Info("the search for sessions of dead gateways failed", "store", "error", err)
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
				m.options().Logger.Error("a session of a dead gateway cannot be ended", "session_id", clip(l.Record.ID), "error", err)
			}
		}
		left[key] = from
	}
	return left
}

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

// EndRecorded ends a session without a node, for an operator. found is its record. The error wraps ErrElsewhere if
// another node has the session, ErrNoSession if it is over, or store.ErrUnavailable.
func (m *Manager) EndRecorded(ctx context.Context, found store.SessionRecord) error {
	if m.options().Cluster == nil {
		return ErrNoSession
	}
	return m.endOne(ctx, Lost{Record: found}, causeOperator)
}

// endOne ends a session without a node as its node would have. The error is that of EndRecorded.
func (m *Manager) endOne(ctx context.Context, l Lost, cause *Cause) error {
	leave, first := m.roster.take(l.Record.ID)
	if !first {
		return ErrElsewhere // its client has just returned
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
	s.log().Info("a session without a gateway was ended", "reason", cause.Reason, "epoch", t.Record.Epoch, "given", t.handedOver(),
		"checkpoint_age_ms", g.arrivedAt.Sub(t.Checkpoint.At).Milliseconds())
	m.concludeWhenDone(a, s, g)
	return nil
}

func (g *startup) endTaken(ctx context.Context, t *Taken, cause *Cause) (*session, error) {
	m := g.m
	at, caps, err := g.prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	at.saved.State.Calls.Questions = nil // the API takes their answers, as after any end
	if _, no := g.adopt(at); no != nil {
		// The conversation belongs to another session by now.
		g.logger.Warn("the ended session's conversation belongs to another session and stays unchanged",
			"conversation_id", g.ConversationID, "reason", no.Reason)
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

func (at *restoring) end(s *session, cause *Cause) {
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	at.settleDraft(s, 0, false)
	s.end(cause)
	at.saved.State.Phase = orchestrator.PhaseEnded // so that the step needs no model
	s.step(orchestrator.Restored{Memory: at.saved.State, StartedAt: at.taken.Record.StartedAt, Epoch: at.taken.Record.Epoch,
		Given: at.taken.handedOver()}, time.Now())
	s.client.attachment().start()
}

// noClient is the client of a session that is ended without one.
type noClient struct{}

var errNoClient = errors.New("session: the client has not returned")

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

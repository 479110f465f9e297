// Package store keeps the data that outlives a process and is shared by all nodes: the ledger of side effects,
// confirmations, approvals, blocks, the audit stream, conversations, answers to repeatable messages, tickets, voice
// sessions, nodes, the session directory, checkpoints, usage, edited agents, jobs and webhook events. Its engine is NATS
// JetStream: a server inside this process without a listening port, or an external cluster.
//
// Four rules hold. An acknowledged write is on disk (unless Options.Sync or the external cluster's configuration says
// otherwise). Where exactly one caller must win, compare-and-set decides, never an earlier read. Every record expires.
// Every operation takes at most Options.Wait, whatever its context; a temporary error wraps ErrUnavailable. All types
// may be used concurrently.
//
// In an external cluster the streams and buckets are voicegw_audit, voicegw_webhooks and KV_voicegw_ followed by
// ledger, confirmations, approvals, blocks, conversations, answers, leases, tickets, voice, nodes, sessions and
// checkpoints; nodes ping each other on the subjects voicegw.node.<id>. NATS's own tools can read them. Keys are the
// hexadecimal SHA-256 of names.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

const (
	// openWait bounds each step of Open, including a new cluster's leader elections.
	openWait = 20 * time.Second
	// attemptWait bounds one attempt: a cluster without a leader doesn't answer at all.
	attemptWait = 1500 * time.Millisecond
	// retryPause is the pause between attempts.
	retryPause = 50 * time.Millisecond
	// conflictPause is the pause after a conflict.
	conflictPause = 2 * time.Millisecond
	// closeWait bounds Close's wait for the client's goroutines.
	closeWait = 5 * time.Second
	// headroom is reserved for headers in the engine's message size limit.
	headroom = 8 << 10
	// levelTTL is the JetStream API level with per-message TTL (nats-server 2.11).
	levelTTL = 1
)

// Store keeps all data in one engine. It may be used concurrently, and by several nodes on one cluster.
type Store struct {
	// The parts, immutable after Open.
	Ledger        *Ledger
	Confirmations *Confirmations
	Approvals     *Approvals
	Blocks        *Blocks
	Audit         *AuditStream
	Conversations *Conversations
	Answers       *Answers
	Tickets       *Tickets
	VoiceSessions *VoiceSessions
	Nodes         *Nodes
	Directory     *Directory
	Checkpoints   *Checkpoints
	Usage         *Usage
	Agents        *Agents
	Webhooks      *Webhooks
	Jobs          *Jobs
	// Accepted is the damage that Open accepted, or nil.
	Accepted *Damage

	// Immutable after Open.
	o        Options
	log      *slog.Logger
	embedded *embedded // nil for an external server
	conn     *nats.Conn
	js       jetstream.JetStream
	parts    map[witness.Bucket]jetstream.Stream
	journal  *witness.Journal // nil in memory and with an external server
	place    *place           // nil if journal is nil

	looking sync.Mutex // allows one look at a time
	// misplaced is the problem with the data folder, or nil. Only look writes it.
	misplaced atomic.Pointer[error]
	member    atomic.Pointer[Membership] // nil before Nodes.Join

	// done is closed by Close: operations stop retrying and goroutines end.
	done chan struct{}
	// gone is closed when the client's connection is closed.
	gone      chan struct{}
	mirroring sync.Mutex // guards backs
	backs     []chan struct{}

	closing sync.Once
	ended   error          // Close's result; written within closing
	running sync.WaitGroup // the Store's goroutines

	mu     sync.RWMutex // held for reading by each operation, so that Close waits for them
	closed bool         // guarded by mu
}

// Open opens a store, creating missing buckets and streams. Errors name the problem, its place and the fix. The store's
// goroutines end with Close.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		o: o, log: o.Logger, parts: map[witness.Bucket]jetstream.Stream{},
		done: make(chan struct{}), gone: make(chan struct{}),
	}
	if o.URL == "" {
		if s.embedded, err = startEmbedded(o); err != nil {
			return nil, err
		}
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store: opening %s: %w", s.where(), err), s.Close())
	}
	return s, nil
}

// where returns the location of the data, without secrets.
func (s *Store) where() string {
	switch {
	case s.o.URL != "":
		return hosts(s.o.URL)
	case s.o.Memory:
		return "memory"
	}
	return s.o.Dir
}

func hosts(urls string) string {
	var names []string
	for _, one := range strings.Split(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" {
			names = append(names, "(unreadable address)")
			continue
		}
		names = append(names, u.Scheme+"://"+u.Host)
	}
	return strings.Join(names, ",")
}

func (s *Store) connect() error {
	options := []nats.Option{
		nats.Name("voicegw"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		// Without buffering, a message that can't be sent fails at once and is retried by its sender, so nothing is
		// written after its caller gave up.
		nats.ReconnectBufSize(-1),
		nats.Timeout(s.o.Wait),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.ClosedHandler(func(*nats.Conn) { close(s.gone) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { s.lost(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { s.found() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Warn("store_connection", "error", err)
		}),
	}
	address := s.o.URL
	if s.embedded != nil {
		options = append(options, nats.InProcessServer(s.embedded.server))
	}
	if s.o.Credentials != "" {
		options = append(options, nats.UserCredentials(s.o.Credentials))
	}
	var err error
	if s.conn, err = nats.Connect(address, options...); err != nil {
		return s.unreachable(err)
	}
	s.js, err = jetstream.New(s.conn)
	return err
}

// unreachable explains a failed connection. It omits the error text of an invalid URL, which may contain secrets.
func (s *Store) unreachable(err error) error {
	var parse *url.Error
	switch {
	case errors.As(err, &parse):
		return fmt.Errorf("store: invalid URL of the NATS cluster; use nats://host:4222 or tls://host:4222, several separated by commas")
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("%w: the NATS server %s rejects the credentials; check the file %q: %w", ErrUnavailable, s.where(),
			s.o.Credentials, err)
	}
	return fmt.Errorf("%w: no NATS server at %s; start it, or check the URL: %w", ErrUnavailable, s.where(), err)
}

func (s *Store) lost(err error) {
	select {
	case <-s.done:
	default:
		s.log.Warn("store_disconnected", "server", s.where(), "error", err)
	}
	if m := s.member.Load(); m != nil {
		m.lost()
	}
}

func (s *Store) found() {
	s.log.Info("store_reconnected", "server", s.where())
	if m := s.member.Load(); m != nil {
		m.found()
	}
	s.connected()
}

// connected makes all copies of buckets read everything again.
func (s *Store) connected() {
	s.mirroring.Lock()
	defer s.mirroring.Unlock()
	for _, back := range s.backs {
		poke(back)
	}
}

func (s *Store) prepare(ctx context.Context) error {
	err := s.within(ctx, openWait, "asking for JetStream", func(ctx context.Context) error {
		info, err := s.js.AccountInfo(ctx)
		switch {
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return final{fmt.Errorf("JetStream is not enabled; start the server with -js, or enable it for the account: %w", err)}
		case err != nil:
			return err
		case info.API.Level < levelTTL:
			return final{errors.New("the NATS server is too old: version 2.11 or newer is needed for per-message TTL")}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.openParts(ctx); err != nil {
		return err
	}
	if s.embedded != nil && !s.o.Memory {
		if err = s.compare(ctx); err != nil {
			return err
		}
	}
	if err = errors.Join(s.Blocks.begin(), s.Agents.begin(), s.Jobs.begin()); err != nil || s.journal == nil {
		return err
	}
	if s.place, err = pinAll(s.o); err != nil {
		return err
	}
	s.running.Go(s.attend)
	return nil
}

// buckets are the key-value buckets, described for NATS's tools.
var buckets = map[witness.Bucket]string{
	0:                     "the gateways that share this store",
	witness.Sessions:      "which node runs which voice session",
	witness.Checkpoints:   "what another node needs to continue a voice session",
	witness.Usage:         "what users and keys have used, by day and process",
	witness.Ledger:        "side effects, before and after they are done",
	witness.Confirmations: "questions put to users, and their answers",
	witness.Approvals:     "approved actions whose outcome is not known",
	witness.Conversations: "what was said, by text and by voice",
	witness.Leases:        "conversations that a turn or a voice session holds",
	witness.Answers:       "what became of messages that may be sent again",
	witness.Tickets:       "tickets for voice sessions, by the hash of their secret",
	witness.Voice:         "conversations that are in voice",
	witness.Blocks:        "blocked users, and until when",
	witness.Agents:        "agents that were edited, and what the edits have replaced",
	witness.Jobs:          "long work that calls have begun",
}

func (s *Store) openParts(ctx context.Context) (err error) {
	bounds := map[witness.Bucket]most{
		witness.Checkpoints: {256 << 20, 64 << 20}, witness.Usage: {256 << 20, 16 << 20}, witness.Answers: {64 << 20, 16 << 20},
		witness.Conversations: {s.o.ConversationBytes, 64 << 20},
	}
	b := map[witness.Bucket]*bucket{}
	for part := range witness.Last + 1 {
		if about, ok := buckets[part]; ok {
			if b[part], err = s.openBucket(ctx, part, about, bounds[part].of(s.o)); err != nil {
				return err
			}
		}
	}
	if leases := b[witness.Leases].stream; s.embedded != nil {
		// No other process uses the store, so the holder of a lease was killed.
		err = s.within(ctx, openWait, "ending the leases of before", func(ctx context.Context) error { return leases.Purge(ctx) })
		if err != nil {
			return err
		}
	}
	s.Nodes = &Nodes{bucket: b[0]}
	s.Directory = &Directory{bucket: b[witness.Sessions], nodes: s.Nodes, own: map[string]*Owned{}}
	s.Checkpoints = newCheckpoints(b[witness.Checkpoints], s.Directory)
	s.Usage = &Usage{bucket: b[witness.Usage]}
	s.Ledger = &Ledger{bucket: b[witness.Ledger], life: s.o.LedgerLife}
	s.Approvals = &Approvals{
		bucket: b[witness.Approvals], ledger: b[witness.Ledger], questions: b[witness.Confirmations], life: s.o.LedgerLife,
		process: newMark(), alone: s.embedded != nil,
	}
	s.Confirmations = &Confirmations{bucket: b[witness.Confirmations], approvals: s.Approvals}
	s.Conversations = newConversations(b[witness.Conversations], b[witness.Leases], s.Nodes)
	s.Answers = &Answers{bucket: b[witness.Answers]}
	s.Tickets = &Tickets{bucket: b[witness.Tickets], life: s.o.TicketLife, most: mostTickets}
	s.VoiceSessions = &VoiceSessions{bucket: b[witness.Voice], tickets: s.Tickets, nodes: s.Nodes}
	s.Blocks, s.Agents, s.Jobs = newBlocks(b[witness.Blocks]), newAgents(b[witness.Agents]), newJobs(b[witness.Jobs], s.Conversations)
	if s.Webhooks, err = s.openWebhooks(ctx); err != nil {
		return err
	}
	s.Audit, err = s.openAudit(ctx)
	return err
}

// Ready checks that the store answers and accepts writes: one exchange with the leader of the ledger's stream, of some
// 100 us, and the embedded server's health. After a failed write (full disk), the stream accepts no more until the Store
// is reopened. The error wraps ErrUnavailable, or is errClosed.
func (s *Store) Ready(ctx context.Context) error {
	return s.within(ctx, s.o.Wait, "asking whether it is ready", func(ctx context.Context) error {
		if _, err := s.Ledger.bucket.stream.Info(ctx); err != nil || s.embedded == nil {
			return err
		}
		if err := s.embedded.healthy(ctx); err != nil {
			return final{fmt.Errorf("%w: %s: %w; check whether the disk is full, and restart", ErrUnavailable, s.where(), err)}
		}
		return nil
	})
}

// Close waits up to Options.Wait for running operations; later ones get errClosed. Acknowledged data stays. It may be
// called more than once and concurrently.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.done)
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.running.Wait()
		if s.conn != nil {
			s.conn.Close()
		} else {
			close(s.gone)
		}
		select {
		case <-s.gone:
		case <-time.After(closeWait):
			s.ended = errors.New("store: the connection did not close")
		}
		if s.journal != nil {
			s.ended = errors.Join(s.ended, s.journal.Close())
		}
		if s.embedded != nil {
			s.ended = errors.Join(s.ended, s.embedded.stop())
		}
	})
	return s.ended
}

// final is an error that another attempt can't fix.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// start runs f on a goroutine that Close waits for; f must end when s.done is closed. It returns false if the Store is
// closed.
func (s *Store) start(f func()) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// within runs attempt until it succeeds or fails permanently, for at most wait. Each attempt gets a third of that, so
// that a lost answer leaves time for another. attempt must not call within.
func (s *Store) within(ctx context.Context, wait time.Duration, what string, attempt func(context.Context) error) error {
	began := time.Now()
	err := s.tries(ctx, wait, what, attempt)
	if s.o.Observe != nil {
		s.o.Observe(opOf(what), time.Since(began), errors.Is(err, ErrUnavailable))
	}
	return err
}

func (s *Store) tries(ctx context.Context, wait time.Duration, what string, attempt func(context.Context) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		if gone := s.misplaced.Load(); gone != nil {
			return fmt.Errorf("store: %s: %w: %w", what, ErrUnavailable, *gone)
		}
		one, stop := context.WithTimeout(bounded, min(wait/3, attemptWait))
		err := attempt(one)
		stop()
		if last, ok := errors.AsType[final](err); ok {
			return fmt.Errorf("store: %s: %w", what, last.error)
		}
		if err = classed(ctx, err); !errors.Is(err, ErrUnavailable) {
			return described(what, err)
		}
		select {
		case <-time.After(retryPause):
		case <-bounded.Done():
			return described(what, err)
		case <-s.done:
			return errClosed
		}
	}
}

// Op is a kind of operation, for metrics.
type Op string

// The operations. OpAsk checks the store, OpOpen is everything else: creating buckets and streams.
const (
	OpRead  Op = "read"
	OpWrite Op = "write"
	OpAsk   Op = "ask"
	OpOpen  Op = "open"
)

func opOf(what string) Op {
	doing, _, _ := strings.Cut(what, " ")
	switch doing {
	case "reading", "listing", "counting":
		return OpRead
	case "writing", "removing":
		return OpWrite
	case "asking":
		return OpAsk
	}
	return OpOpen
}

// bounded gives an operation of several steps one deadline.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.o.Wait)
}

// pause waits after a conflict: a leader waiting for its followers refuses a write because of one that can't be read
// yet, possibly the caller's own.
func (s *Store) pause(ctx context.Context) error {
	return await(ctx, s, time.After(conflictPause), "conflict with another write")
}

// poke sends to a channel of capacity 1, unless it is full.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// await waits until a channel has a value or is closed.
func await[T any](ctx context.Context, s *Store, on <-chan T, what string) error {
	select {
	case <-on:
		return nil
	case <-s.done:
		return errClosed
	case <-ctx.Done():
		return classed(ctx, fmt.Errorf("store: %s: %w", what, ctx.Err()))
	}
}

func described(what string, err error) error {
	if err == nil || errors.Is(err, errConflict) || errors.Is(err, errNone) {
		return err
	}
	return fmt.Errorf("store: %s: %w", what, err)
}

func (s *Store) most() int {
	return int(min(s.conn.MaxPayload(), embeddedPayload)) - headroom
}

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
	// openWait bounds each step of Open, and with it the time that a cluster which has just
	// started has for electing its leaders.
	openWait = 20 * time.Second
	// attemptWait bounds one attempt of an operation: a cluster that is electing a leader does
	// not answer at all.
	attemptWait = 1500 * time.Millisecond
	// retryPause is how long an operation waits before it tries again.
	retryPause = 50 * time.Millisecond
	// conflictPause is how long a step waits after it met another write.
	conflictPause = 2 * time.Millisecond
	// closeWait bounds how long Close waits for the client's own goroutines.
	closeWait = 5 * time.Second
	// headroom is the part of the engine's limit on a message that is kept free for headers.
	headroom = 8 << 10
	// levelTTL is the JetStream API level from which each message may have its own life
	// (nats-server 2.11).
	levelTTL = 1
)

// Store keeps everything in one engine. Its parts may be used by any number of
// goroutines at once, and by several nodes on one cluster.
type Store struct {
	// Fixed after Open.
	o        Options
	log      *slog.Logger
	embedded *embedded // nil for an external server
	conn     *nats.Conn
	js       jetstream.JetStream
	ledger   *Ledger
	confirm  *Confirmations
	blocks   *Blocks
	audit    *AuditStream
	talks    *Conversations
	answers  *Answers
	tickets  *Tickets
	voice    *VoiceSessions
	nodes    *Nodes
	// directory and checkpoints let voice sessions go on at other nodes.
	directory   *Directory
	checkpoints *Checkpoints
	usage       *Usage
	agents      *Agents
	webhooks    *Webhooks
	jobs        *Jobs
	parts       map[witness.Bucket]jetstream.Stream
	journal     *witness.Journal // nil in memory and with an external server
	accepted    *Damage          // nil unless Options.AcceptDamage was needed
	place       *place           // nil if journal is nil

	looking sync.Mutex // allows one look at a time
	// misplaced says why the data folder is not the one that was opened; nil while it is.
	// Only look writes it.
	misplaced atomic.Pointer[error]
	member    atomic.Pointer[Membership] // nil before Nodes.Join

	// done is closed by Close: no operation tries again, and the goroutines end.
	done chan struct{}
	// gone is closed by the client library once its connection is closed.
	gone      chan struct{}
	mirroring sync.Mutex // guards mirrors
	mirrors   []*mirror

	closing sync.Once
	ended   error          // of Close; written within closing
	running sync.WaitGroup // the goroutines of this Store

	mu     sync.RWMutex // each operation holds it for reading, so that Close waits for them
	closed bool         // guarded by mu
}

// Open opens the store that o describes, and creates missing buckets and streams. The errors
// say what is wrong, where, and what to do. The goroutines that it starts end with Close.
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

// where names the place of the data, without a secret.
func (s *Store) where() string {
	switch {
	case s.o.URL != "":
		return hosts(s.o.URL)
	case s.o.Memory:
		return "memory"
	}
	return s.o.Dir
}

// hosts returns a list of URLs without the parts that may be secret.
func hosts(urls string) string {
	var names []string
	for _, one := range strings.Split(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" {
			names = append(names, "(an address that cannot be read)")
			continue
		}
		names = append(names, u.Scheme+"://"+u.Host)
	}
	return strings.Join(names, ",")
}

// connect connects the client once.
func (s *Store) connect() error {
	options := []nats.Option{
		nats.Name("voicegw"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		// A message that cannot be sent fails at once, and its sender tries again: so nothing is
		// written long after its caller has given up.
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

// unreachable says why there is no connection. The error of an invalid URL contains the URL,
// which may hold a secret, so its text is left out.
func (s *Store) unreachable(err error) error {
	var parse *url.Error
	switch {
	case errors.As(err, &parse):
		return fmt.Errorf("store: the URL of the NATS cluster cannot be read; it is nats://host:4222 or tls://host:4222, several separated by commas")
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return fmt.Errorf("%w: the NATS server %s refuses who we say we are; check the credentials file %q: %w", ErrUnavailable, s.where(), s.o.Credentials, err)
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

// prepare checks what the server can do and opens each part.
func (s *Store) prepare(ctx context.Context) error {
	err := s.within(ctx, openWait, "asking for JetStream", func(ctx context.Context) error {
		info, err := s.js.AccountInfo(ctx)
		switch {
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return final{fmt.Errorf("JetStream is not enabled; start the server with -js, or enable it for the account: %w", err)}
		case err != nil:
			return err
		case info.API.Level < levelTTL:
			return final{errors.New("the NATS server is too old: version 2.11 or newer is needed, for records that end by themselves")}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, open := range s.opens() {
		if err := open(ctx); err != nil {
			return err
		}
	}
	if s.embedded != nil && !s.o.Memory {
		if err = s.compare(ctx); err != nil {
			return err
		}
	}
	if err = errors.Join(s.blocks.mirror.follow(), s.agents.mirror.follow(), s.jobs.mirror.follow()); err != nil || s.journal == nil {
		return err
	}
	if s.place, err = pinAll(s.o); err != nil {
		return err
	}
	s.running.Go(s.attend)
	return nil
}

// opens returns what opens each part, in the order in which they need each other.
func (s *Store) opens() []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) (err error) { s.nodes, err = s.openNodes(ctx); return err },
		func(ctx context.Context) (err error) { s.directory, err = s.openDirectory(ctx); return err },
		func(ctx context.Context) (err error) { s.checkpoints, err = s.openCheckpoints(ctx); return err },
		func(ctx context.Context) (err error) { s.usage, err = s.openUsage(ctx); return err },
		func(ctx context.Context) (err error) { s.webhooks, err = s.openWebhooks(ctx); return err },
		func(ctx context.Context) (err error) { s.ledger, err = s.openLedger(ctx); return err },
		func(ctx context.Context) (err error) { s.confirm, err = s.openConfirmations(ctx); return err },
		func(ctx context.Context) (err error) { s.audit, err = s.openAudit(ctx); return err },
		func(ctx context.Context) (err error) { s.talks, err = s.openConversations(ctx); return err },
		func(ctx context.Context) (err error) { s.answers, err = s.openAnswers(ctx); return err },
		func(ctx context.Context) (err error) { s.tickets, err = s.openTickets(ctx); return err },
		func(ctx context.Context) (err error) { s.voice, err = s.openVoiceSessions(ctx); return err },
		func(ctx context.Context) (err error) { s.blocks, err = s.openBlocks(ctx); return err },
		func(ctx context.Context) (err error) { s.agents, err = s.openAgents(ctx); return err },
		func(ctx context.Context) (err error) { s.jobs, err = s.openJobs(ctx); return err },
	}
}

// Ledger returns the ledger of side effects.
func (s *Store) Ledger() *Ledger { return s.ledger }

// Confirmations returns the questions put to users.
func (s *Store) Confirmations() *Confirmations { return s.confirm }

// Approvals returns the approved actions whose outcome is not known.
func (s *Store) Approvals() *Approvals { return s.confirm.approvals }

// Blocks returns who is shut out.
func (s *Store) Blocks() *Blocks { return s.blocks }

// Audit returns the stream of audit records.
func (s *Store) Audit() *AuditStream { return s.audit }

// Conversations returns what was said.
func (s *Store) Conversations() *Conversations { return s.talks }

// Answers returns what became of messages.
func (s *Store) Answers() *Answers { return s.answers }

// Tickets returns what opens voice sessions.
func (s *Store) Tickets() *Tickets { return s.tickets }

// VoiceSessions returns the voice sessions that are offered or run.
func (s *Store) VoiceSessions() *VoiceSessions { return s.voice }

// Nodes returns which gateways share the store.
func (s *Store) Nodes() *Nodes { return s.nodes }

// Directory returns which node runs which voice session.
func (s *Store) Directory() *Directory { return s.directory }

// Checkpoints returns what another node needs to go on with a voice session.
func (s *Store) Checkpoints() *Checkpoints { return s.checkpoints }

// Usage returns what users and keys have used.
func (s *Store) Usage() *Usage { return s.usage }

// Agents returns the edited agents.
func (s *Store) Agents() *Agents { return s.agents }

// Jobs returns the long work that calls have begun.
func (s *Store) Jobs() *Jobs { return s.jobs }

// Webhooks returns the events that are on their way to others.
func (s *Store) Webhooks() *Webhooks { return s.webhooks }

// Ready says whether the store answers and accepts writes: one exchange with the leader of
// the ledger's stream, of some 100 us, and the embedded server's own health. After a write to
// that stream has failed (the disk was full), the stream accepts no more until the Store is
// opened again. The error wraps ErrUnavailable, or is errClosed.
func (s *Store) Ready(ctx context.Context) error {
	return s.within(ctx, s.o.Wait, "asking whether it is ready", func(ctx context.Context) error {
		if _, err := s.ledger.bucket.stream.Info(ctx); err != nil || s.embedded == nil {
			return err
		}
		if err := s.embedded.healthy(ctx); err != nil {
			return final{fmt.Errorf("%w: %s: %w; see whether the disk is full, and restart", ErrUnavailable, s.where(), err)}
		}
		return nil
	})
}

// Close ends the store: it waits for running operations for at most Options.Wait, and later
// ones get errClosed. Everything that was acknowledged stays. It may be called more than once
// and from any goroutine.
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

// final is an error of an attempt which another attempt cannot mend.
type final struct{ error }

// Unwrap returns the wrapped error.
func (f final) Unwrap() error { return f.error }

// start runs f on a goroutine that Close waits for; f ends when s.done is closed. It
// reports false if the Store is closed.
func (s *Store) start(f func()) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// within runs attempt until it succeeds or fails for good, for at most wait. One attempt has
// a third of that, so that a lost answer leaves time for another one. attempt must not call
// within.
func (s *Store) within(ctx context.Context, wait time.Duration, what string, attempt func(context.Context) error) error {
	began := time.Now()
	err := s.tries(ctx, wait, what, attempt)
	if s.o.Observe != nil {
		s.o.Observe(opOf(what), time.Since(began), errors.Is(err, ErrUnavailable))
	}
	return err
}

// tries is within without its observer.
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

// Op is a kind of operation, for whoever counts them.
type Op string

// The operations. OpAsk asks whether the store is there, OpOpen is everything else: it makes buckets and
// streams at the start.
const (
	OpRead  Op = "read"
	OpWrite Op = "write"
	OpAsk   Op = "ask"
	OpOpen  Op = "open"
)

// opOf returns the kind of the operation that is described like that.
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

// bounded gives an operation of several steps a common deadline.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.o.Wait)
}

// pause waits a moment after a conflict: a leader that waits for its followers refuses a
// write because of another one that cannot be read yet, which may be the caller's own.
func (s *Store) pause(ctx context.Context) error {
	select {
	case <-time.After(conflictPause):
		return nil
	case <-s.done:
		return errClosed
	case <-ctx.Done():
		return classed(ctx, fmt.Errorf("store: another write is in the way: %w", ctx.Err()))
	}
}

// described says which operation failed. The two outcomes that callers in this package
// compare stay unwrapped.
func described(what string, err error) error {
	if err == nil || errors.Is(err, errConflict) || errors.Is(err, errNone) {
		return err
	}
	return fmt.Errorf("store: %s: %w", what, err)
}

// most is the limit of one value in bytes.
func (s *Store) most() int {
	return int(min(s.conn.MaxPayload(), embeddedPayload)) - headroom
}

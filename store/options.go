package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/nats-io/nkeys"

	"voicegw/config/setting"
)

// Sync says when the embedded server syncs written data to the disk.
type Sync int

const (
	// SyncAlways acknowledges a write once it is on the disk: a power failure loses no
	// acknowledged write.
	SyncAlways Sync = iota
	// SyncInterval acknowledges a write once the operating system has it, and syncs once a
	// second: a crash of the process loses nothing, a power failure loses up to the last
	// second. It is some twenty times faster.
	SyncInterval
)

// syncInterval is the interval of SyncInterval.
const syncInterval = time.Second

// Options configure a Store. One of Dir, URL and Memory is required.
type Options struct {
	// Dir is the folder of the embedded server's data, which no other process may have open.
	// It is created if it is missing, for this user alone (0700).
	Dir string
	// URL is an external NATS cluster: nats://host:port or tls://host:port, several
	// separated by commas. It needs JetStream and version 2.11 or newer. Empty means
	// embedded.
	URL string
	// Credentials is the path of a .creds file for URL; empty means no credentials.
	Credentials string
	// Replicas is how many servers of an external cluster keep each record, 1 to 5.
	// Zero means 1. Whether those sync to disk before they acknowledge is their own
	// configuration (jetstream.sync_interval: always).
	Replicas int
	// Sync applies to the embedded server alone.
	Sync Sync
	// Memory keeps everything in an embedded server's memory: for tests, and for commands
	// that need a store for one call. Dir is ignored then.
	Memory bool
	// Prefix begins the names of buckets and streams: letters, digits, - and _. Stores
	// with different prefixes share a cluster without seeing each other. Empty means
	// "voicegw".
	Prefix string
	// LedgerLife is how long the ledger remembers a reservation, and again from its finish
	// on; at least one second. Zero means 24 hours.
	LedgerLife time.Duration
	// AuditAge and AuditBytes bound the audit stream: older lines are removed, and the oldest
	// ones when it is larger. Zero means 30 days and 1 GiB.
	AuditAge   time.Duration
	AuditBytes int64
	// MostBlocks bounds how many users are blocked at once. Zero means 100,000.
	MostBlocks int
	// ConversationLife is how long a conversation is kept after it was last saved, and
	// ConversationBytes bounds all of them together: beyond it, those that were saved longest
	// ago are removed. At least a second and 1 MiB. Zero means 30 days and 1 GiB.
	ConversationLife  time.Duration
	ConversationBytes int64
	// AnswerBytes bounds all answers to messages that may be sent again: beyond it, those
	// that were saved longest ago are removed. At least 1 MiB. Zero means 64 MiB.
	AnswerBytes int64
	// TicketLife is how long a ticket can be used. Zero means a minute.
	TicketLife time.Duration
	// MostTickets bounds how many tickets are remembered at once: those of the last hour,
	// and those made within TicketLife. Zero means 100,000.
	MostTickets int
	// Wait bounds every operation, in addition to its context's deadline. Within it an
	// operation that may succeed later is tried again. Zero means 5 s.
	Wait time.Duration
	// AcceptDamage is the code of a DamageError, to continue with that damage once: lost
	// entries count as in doubt. Empty refuses to open damaged data.
	AcceptDamage string
	// Observe is told of each operation: how long it took with all attempts, and whether the store
	// could not be reached. It may be called concurrently and must not block. Nil means nobody.
	Observe func(op Op, took time.Duration, failed bool)
	// Logger receives what the embedded server warns of (warn) and reports (debug), and when
	// an external one is lost and found again. Nil means no logging.
	Logger *slog.Logger
}

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// memoryAudit, memoryConversations and memoryAnswers bound what a Store in memory keeps.
const (
	memoryAudit         = 64 << 20
	memoryConversations = 64 << 20
	memoryAnswers       = 16 << 20
)

// complete returns the options with their defaults, or what is wrong with them.
func (o Options) complete() (Options, error) {
	setDefault(&o.Replicas, setting.Replicas)
	setDefault(&o.Prefix, "voicegw")
	setDefault(&o.LedgerLife, 24*time.Hour)
	setDefault(&o.AuditAge, setting.AuditAge)
	setDefault(&o.AuditBytes, 1<<30)
	setDefault(&o.MostBlocks, 100_000)
	setDefault(&o.ConversationLife, 30*24*time.Hour)
	setDefault(&o.ConversationBytes, 1<<30)
	setDefault(&o.AnswerBytes, 64<<20)
	setDefault(&o.TicketLife, time.Minute)
	setDefault(&o.MostTickets, 100_000)
	setDefault(&o.Wait, 5*time.Second)
	if o.Memory {
		o.AuditBytes = min(o.AuditBytes, memoryAudit)
		o.ConversationBytes = min(o.ConversationBytes, memoryConversations)
		o.AnswerBytes = min(o.AnswerBytes, memoryAnswers)
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := o.checkPlace(); err != nil {
		return o, err
	}
	return o, o.checkBounds()
}

// checkPlace says what is wrong with the place of the data.
func (o Options) checkPlace() error {
	switch {
	case o.URL != "" && o.Memory:
		return errors.New("store: URL and Memory exclude each other: an external server keeps what it keeps")
	case o.URL == "" && !o.Memory && o.Dir == "":
		return errors.New("store: where to keep the data is not said: set Dir to a folder, or URL to a NATS cluster")
	case o.URL == "" && o.Credentials != "":
		return errors.New("store: Credentials are for an external cluster: set URL too, or leave them out")
	case o.URL == "" && o.Replicas != 1:
		return fmt.Errorf("store: the embedded server keeps one replica, not %d: set URL, or leave Replicas out", o.Replicas)
	case o.Replicas < 1 || o.Replicas > 5:
		return fmt.Errorf("store: %d replicas: use 1 to 5", o.Replicas)
	case !validPrefix.MatchString(o.Prefix):
		return fmt.Errorf("store: the prefix %q: use up to 64 letters, digits, - and _", o.Prefix)
	}
	return nil
}

// checkBounds says which bound is invalid.
func (o Options) checkBounds() error {
	switch {
	case o.LedgerLife < time.Second:
		return fmt.Errorf("store: a ledger that remembers for %v: use a second or more", o.LedgerLife)
	case o.AuditAge < time.Second || o.AuditBytes < 1<<20:
		return fmt.Errorf("store: an audit of %v and %d bytes: use a second and 1 MiB, or more", o.AuditAge, o.AuditBytes)
	case o.ConversationLife < time.Second || o.ConversationBytes < 1<<20:
		return fmt.Errorf("store: conversations of %v and %d bytes: use a second and 1 MiB, or more", o.ConversationLife, o.ConversationBytes)
	case o.AnswerBytes < 1<<20:
		return fmt.Errorf("store: answers of %d bytes: use 1 MiB or more", o.AnswerBytes)
	case o.TicketLife < 0 || o.MostTickets < 0:
		return errors.New("store: TicketLife and MostTickets cannot be negative")
	case o.MostBlocks < 0 || o.Wait < 0:
		return errors.New("store: MostBlocks and Wait cannot be negative")
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// CheckCredentials reports whether a file of [Options.Credentials] can be read and holds a user's credentials. The
// error does not repeat them. It is nil for an empty path.
func CheckCredentials(path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("store: the credentials cannot be read: %w", err)
	}
	defer clear(data)
	if _, err := nkeys.ParseDecoratedJWT(data); err != nil {
		return fmt.Errorf("store: the file %s holds no user JWT; make it with nsc generate creds", path)
	}
	seed, err := nkeys.ParseDecoratedUserNKey(data)
	if err != nil {
		return fmt.Errorf("store: the file %s holds no user seed; make it with nsc generate creds", path)
	}
	seed.Wipe()
	return nil
}

package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nkeys"

	"voicegw/config/setting"
)

// Sync is when the embedded server syncs data to disk.
type Sync int

const (
	// SyncAlways acknowledges a write once it is on disk: a power failure loses no acknowledged write.
	SyncAlways Sync = iota
	// SyncInterval acknowledges a write once the operating system has it, and syncs once a second: a power failure loses
	// up to a second, a crash of the process nothing. It is about twenty times faster.
	SyncInterval
)

const syncInterval = time.Second

// Options configure a Store. One of Dir, URL and Memory is required.
type Options struct {
	// Dir is the embedded server's data folder, for one process only. It is created if missing, with mode 0700.
	Dir string
	// URL is an external NATS cluster with JetStream, version 2.11 or newer: nats://host:port or tls://host:port,
	// several separated by commas. Empty means embedded.
	URL string
	// Credentials is the path of a .creds file for URL; may be empty.
	Credentials string
	// Replicas is the number of servers of an external cluster that keep each record, 1 to 5. Zero means 1. Their own
	// configuration decides whether they sync before acknowledging (jetstream.sync_interval: always).
	Replicas int
	// Sync applies to the embedded server only.
	Sync Sync
	// Memory keeps everything in an embedded server's memory, for tests and one-off commands, and ignores Dir.
	Memory bool
	// LedgerLife is how long the ledger keeps a reservation, and again after its finish. Zero means 24 hours.
	LedgerLife time.Duration
	// AuditAge is how long audit lines are kept. Zero means 30 days.
	AuditAge time.Duration
	// MostBlocks bounds the blocked users. Zero means 100,000.
	MostBlocks int
	// ConversationLife is how long a conversation is kept after its last save, and ConversationBytes bounds all of them:
	// the oldest are removed. At least a second and 1 MiB. Zero means 30 days and 1 GiB.
	ConversationLife  time.Duration
	ConversationBytes int64
	// TicketLife is how long a ticket is valid. Zero means a minute.
	TicketLife time.Duration
	// Wait bounds every operation, including retries, in addition to its context. Zero means 5 s.
	Wait time.Duration
	// AcceptDamage is the code of a DamageError, to continue once with that damage: lost entries count as in doubt.
	// Empty refuses to open damaged data.
	AcceptDamage string
	// Observe is called after each operation with its total time and whether the store was unavailable. It may be called
	// concurrently and must not block. May be nil.
	Observe func(op Op, took time.Duration, failed bool)
	// Logger gets the embedded server's warnings (warn) and reports (debug), and lost and restored connections. May be
	// nil.
	Logger *slog.Logger
}

// prefix begins the names of buckets, streams and subjects.
const prefix = "voicegw"

// most bounds the bytes of a part of the store: beyond it the oldest records are removed, or new ones refused. A Store
// in memory keeps less.
type most struct{ disk, memory int64 }

func (m most) of(o Options) int64 {
	if o.Memory {
		return min(m.disk, m.memory)
	}
	return m.disk
}

func (o Options) complete() (Options, error) {
	o.Replicas = cmp.Or(o.Replicas, setting.Replicas)
	o.LedgerLife = cmp.Or(o.LedgerLife, 24*time.Hour)
	o.AuditAge = cmp.Or(o.AuditAge, setting.AuditAge)
	o.MostBlocks = cmp.Or(o.MostBlocks, 100_000)
	o.ConversationLife = cmp.Or(o.ConversationLife, 30*24*time.Hour)
	o.ConversationBytes = cmp.Or(o.ConversationBytes, 1<<30)
	o.TicketLife = cmp.Or(o.TicketLife, time.Minute)
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, o.checkPlace()
}

func (o Options) checkPlace() error {
	switch {
	case o.URL != "" && o.Memory:
		return errors.New("store: URL and Memory exclude each other; set one of them")
	case o.URL == "" && !o.Memory && o.Dir == "":
		return errors.New("store: no location for the data: set Dir to a folder, or URL to a NATS cluster")
	case o.URL == "" && o.Credentials != "":
		return errors.New("store: Credentials need an external cluster: set URL too, or remove them")
	case o.URL == "" && o.Replicas != 1:
		return fmt.Errorf("store: the embedded server keeps one replica, not %d: set URL, or remove Replicas", o.Replicas)
	case o.Replicas < 1 || o.Replicas > 5:
		return fmt.Errorf("store: %d replicas: use 1 to 5", o.Replicas)
	}
	return nil
}

// CheckCredentials reports whether a file for [Options.Credentials] is readable and has a user's credentials; nil for an
// empty path. The error doesn't contain them.
func CheckCredentials(path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("store: read the credentials: %w", err)
	}
	defer clear(data)
	if _, err := nkeys.ParseDecoratedJWT(data); err != nil {
		return fmt.Errorf("store: the file %s has no user JWT; create it with nsc generate creds", path)
	}
	seed, err := nkeys.ParseDecoratedUserNKey(data)
	if err != nil {
		return fmt.Errorf("store: the file %s has no user seed; create it with nsc generate creds", path)
	}
	seed.Wipe()
	return nil
}

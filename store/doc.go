// Package store keeps what must outlive a process and be the same for all nodes:
// the ledger of side effects, confirmations, blocks, the audit stream, conversations,
// answers to messages that may be sent again, tickets and which conversation is in voice. Its engine is NATS JetStream: a server inside this process without a listening port,
// or an external cluster, through the same code.
//
// Four rules hold for all of it. A write has happened when it is acknowledged, and an
// acknowledged one is on the disk (unless Options.Sync, or the external cluster's own
// configuration, says otherwise). What must have one winner is decided by
// compare-and-set alone, never by what was read before. Every record has an end. Every
// operation has a bound, Options.Wait, whatever its context says; what failed but may
// pass by itself wraps ErrUnavailable.
//
// In an external cluster the streams and buckets are <prefix>_audit and KV_<prefix>_ of
// ledger, confirmations, blocks, conversations, answers, leases, tickets and voice, which NATS's
// own tools can read. The keys are the SHA-256 of what they stand for, in hexadecimal.
package store

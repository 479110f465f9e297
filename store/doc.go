// Package store keeps what must outlive a process and be the same for all nodes: the ledger
// of side effects, confirmations, approvals, blocks, the audit stream, conversations, answers
// to messages that may be sent again, tickets, which conversation is in a voice session, which
// gateways share the store, events that are on their way to webhooks, which of them runs which voice session, and what another one needs to
// go on with it.
// Its engine is NATS JetStream: a server inside this process without a listening port, or an
// external cluster, through the same code.
//
// Four rules hold for all of it. A write has happened when it is acknowledged, and an
// acknowledged write is on the disk (unless Options.Sync, or the external cluster's own
// configuration, says otherwise). Where exactly one caller must win, compare-and-set decides,
// never an earlier read. Every record has an end. Every operation takes at most Options.Wait,
// whatever its context says; an error that may pass by itself wraps ErrUnavailable.
//
// In an external cluster the streams and buckets are <prefix>_audit, <prefix>_webhooks and KV_<prefix>_ followed
// by ledger, confirmations, approvals, blocks, conversations, answers, leases, tickets, voice,
// nodes, sessions and checkpoints; nodes ask each other on the subjects <prefix>.node.<id>. NATS's own tools can read them. The keys are the SHA-256 of the names they stand for,
// in hexadecimal.
package store

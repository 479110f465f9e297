// Package store keeps the data that outlives a process and is shared by all nodes: the ledger of side effects,
// confirmations, approvals, blocks, the audit stream, conversations, answers to repeatable messages, tickets, voice
// sessions, nodes, the session directory, checkpoints, usage, edited agents, jobs and webhook events. Its engine is NATS
// JetStream: a server inside this process without a listening port, or an external cluster.
//
// Four rules hold. An acknowledged write is on disk (unless Options.Sync or the external cluster's configuration says
// otherwise). Where exactly one caller must win, compare-and-set decides, never an earlier read. Every record expires.
// Every operation takes at most Options.Wait, whatever its context; a temporary error wraps ErrUnavailable.
//
// In an external cluster the streams and buckets are voicegw_audit, voicegw_webhooks and KV_voicegw_ followed by
// ledger, confirmations, approvals, blocks, conversations, answers, leases, tickets, voice, nodes, sessions and
// checkpoints; nodes ping each other on the subjects voicegw.node.<id>. NATS's own tools can read them. Keys are the
// hexadecimal SHA-256 of names.
package store

// Package store keeps what must outlive a process and be the same for all nodes:
// the ledger of side effects, confirmations, blocks and the audit stream. Its
// engine is NATS JetStream: a server inside this process without a listening port,
// or an external cluster, through the same code.
package store

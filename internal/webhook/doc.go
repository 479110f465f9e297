// Package webhook sends signed events to other programs. Bodies and signatures follow Standard Webhooks 1.0.0
// (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, read 2026-11-26).
//
// The store keeps an event until each receiver has it, so it outlives this process; of several nodes one at a time
// sends it. A receiver gets every event at least once, in any order, and recognises a repeat by its ID. An event that
// cannot be stored, or that no receiver accepts within a day, is dropped, logged and counted.
package webhook

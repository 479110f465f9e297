// Package webhook sends signed events to other programs. Bodies and signatures follow Standard Webhooks 1.0.0
// (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, read 2026-11-26).
//
// The store keeps an event until each receiver has accepted it, and one node at a time sends it. A receiver gets every
// event at least once, in any order, and recognises repeats by the ID. An event that can't be stored, or that the
// receiver doesn't accept within a day, is dropped, logged and counted.
package webhook

// Package wire is what receivers of webhooks get: the events, their bodies and their signatures, as
// Standard Webhooks 1.0.0 has them
// (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md, read 2026-11-26).
package webhook

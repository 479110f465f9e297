// Package metrics exports Prometheus metrics. All families are in one table ([Families]), from which the list in
// docs/metrics.md is generated.
//
// A family is filled in one of two ways. Other packages report events to functions passed to them ([Metrics.Observe],
// [Metrics.Audited]), so they don't import Prometheus. Everything else is read from existing counters on each scrape
// ([Sources]).
//
// The number of series is bounded: each label has a closed set of values, such as configured provider names or error
// codes, and any other value becomes "other". No label holds a user, session, conversation, address or free text.
package metrics

// Package metrics counts for Prometheus what happens in a gateway. All families stand in one
// table ([Families]); docs/metrics.md tells what each is for.
//
// A family is filled in one of two ways. Events are counted when they happen: the packages that
// know of them call a function that the wiring has given them ([Metrics.Observe],
// [Metrics.Audited]), so none of them imports Prometheus. Everything else is read from counters
// that other packages keep anyway, when somebody asks for the metrics ([Sources]).
//
// The number of series is bounded: each label has a closed set of values, such as the names of
// configured providers or the codes of this program, and any other value becomes "other". No label
// ever names a user, a session, a conversation or an address, nor has text that somebody wrote.
package metrics

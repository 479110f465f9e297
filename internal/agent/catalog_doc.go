// Package catalog holds the agents of a gateway: the one that the configuration makes, those of
// files, and the edits in the store, of which each replaces what is below it. [Catalog.Snapshot] is
// what all requests ask; it is made anew when something has changed.
package agent

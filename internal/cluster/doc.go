// Package cluster lets a client reach its session through any node: a node that doesn't run the session relays the
// client's bytes, unchanged, to the node that does.
//
// Nodes communicate over HTTP at internal addresses that clients need not reach. Each request is signed with a shared
// secret that is never sent. Requests are readable on the network unless the addresses use https.
package cluster

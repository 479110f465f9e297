// Package cluster lets a client reach its session through any node: a node that does not run the
// session carries the client's bytes to the node that does, unread and unchanged.
//
// Nodes speak to each other over HTTP at addresses of their own, which no client needs to reach.
// Each request is signed with a secret that all nodes share. The secret itself is never sent; what
// a request says is readable on the way unless the addresses are https.
package cluster

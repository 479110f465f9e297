// Package rest holds what the simulator's request/response APIs share (chat, embeddings,
// images): an exchange that injects faults while it answers, as a whole or as server-sent
// events, the keys, and the error objects of both providers.
package rest

// Package rest holds what the simulator's request-and-answer APIs share (chat, embeddings,
// images): an exchange that commits faults while it answers, whole or as server-sent
// events, the keys, and the error objects of both providers.
package rest

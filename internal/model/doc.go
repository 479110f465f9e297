// Package model explores every state that a small protocol can reach and says whether its
// promises hold in each, whether an end can always be reached, and whether it is reached when
// every process continues. A broken promise is reported with the shortest way to it.
//
// The models of the gateway's protocols are tests beside the code that they model. They are
// written in Go so that they call the gateway's own decisions, and no second text has to be kept
// true. docs/models.md says what each of them covers and how to read what it prints.
package model

// Package kbtest is for tests of the knowledge base: a [Suite] for every kb.Index, an [Embedder] without a network,
// judged questions about the demo, and any number of records.
package kbtest

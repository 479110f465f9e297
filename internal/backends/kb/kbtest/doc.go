// Package kbtest is for tests of the knowledge base: Suite, which every kb.Index
// must pass, an Embedder that needs no network, the judged set of questions about the
// demo, and records in any number.
package kbtest

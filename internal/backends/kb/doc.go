// Package kb is the knowledge base of the retrieval tools: records, the contract of an [Index], who may read which
// records ([Library]), the authors that a query names ([ResolveAuthors]), and how tools present records to a model
// ([Evidence]).
//
// Package source reads records from a folder into an Index and keeps it up to date. Package local is an index in this
// process, package qdrant one over the network. Both rank alike with [Ranker]: by words with BM25 and, with an
// [Embedder], by vectors, joined by reciprocal rank. Words are lower-case terms without accents, stemmed by Snowball in
// the language of their text. Package embed makes an Embedder of an OpenAI-compatible endpoint, and package kbtest tests
// an Index.
package kb

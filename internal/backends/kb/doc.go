// Package kb is the knowledge base of the retrieval tools: records, the interface [Index], permissions ([Library]), the
// names in a query ([ResolveAuthors]), and records in the answers of tools ([Evidence]).
//
// Package source reads records from a folder into an Index and keeps it up to date. Package local is an index in this
// process, package qdrant one over the network. Both rank with [Ranker]: by words with BM25 and, with an [Embedder], by
// vectors, joined by reciprocal rank. Words are lower-case terms without accents, stemmed by Snowball in the language
// of their text. [EmbeddingClient] is an Embedder over HTTP.
package kb

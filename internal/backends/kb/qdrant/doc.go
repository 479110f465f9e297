// Package qdrant is the knowledge base's index in a Qdrant server, for more records
// than one process should hold, or for several gateways that share them. It speaks
// Qdrant's REST API (https://api.qdrant.tech, version 1.10 and later, read 2026-11-20)
// over net/http.
//
// Words. Qdrant does not rank by words of itself in every version, so this package
// computes a sparse vector of each record: one number for each stem, BM25's term
// weight, under a hash of the stem; Qdrant multiplies by the idf it keeps
// ("modifier": "idf"). The sum is BM25 but for one thing: the mean lengths of titles,
// tags and texts are fixed numbers here, since no client knows those of a shared
// collection. So ranking by words needs no Embedder, and differs little from that
// of package internal/backends/kb/local.
//
// Vectors. A dense vector of each record, compared by cosine; approximately, in
// large collections, as Qdrant's index is.
//
// Both rankings are asked for in one request and fused here, as internal/backends/kb/local does, not by
// Qdrant: its fusion hides the scores that a hit reports, and its k is 2 where 60 is
// wanted.
//
// What is weaker than in one process: an Apply of many records becomes visible part by
// part (new ones before old ones go), and in a cluster a search may be answered by a
// replica that lags. Two sources that fill one collection must read the same folder.
package qdrant

// Package qdrant is the knowledge base's index in a Qdrant server, for many records or for several gateways that share
// them. It uses Qdrant's REST API (https://api.qdrant.tech, version 1.10 and later, read 2026-11-20).
//
// Words. Some versions of Qdrant cannot rank by words, so this package computes a sparse vector for each record: BM25's
// weight of each stem, under a hash of the stem. Qdrant multiplies it by its idf ("modifier": "idf"). The sum is BM25
// with constant mean lengths of titles, tags and texts, because no client knows those of a shared collection. So the
// ranking needs no Embedder and resembles that of package local.
//
// Vectors. Each record has a dense vector. Qdrant compares by cosine, in large collections approximately.
//
// One request returns both rankings, and this package fuses them. Qdrant's own fusion hides the scores and uses the k 2
// instead of 60.
//
// Compared with package local, an Apply of many records becomes visible in parts, new records before the removal of old
// ones, and in a cluster a search may use a replica that lags. All sources of a collection must read the same folder.
package qdrant

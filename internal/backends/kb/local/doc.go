// Package local is the knowledge base's index in this process: BM25 over inverted lists in
// memory, an exact scan of the vectors, and the fusion of package kb.
//
// Words. For each part of a record (title, tags, text) and each term there is a list of the
// records that have it. A score is the plain sum of BM25 over the terms and parts, so that the
// scores of two queries can be compared. Lists only grow: a removed record keeps its places
// until more than half of all places are of removed records.
//
// Vectors. Every record that passes the filter is compared; nothing is approximate.
// A vector costs 4 bytes per dimension and record.
package local

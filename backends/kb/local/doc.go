// Package local is the knowledge base's index in this process: BM25 over bleve's
// segments, an exact scan of the vectors, and the fusion of package kb.
//
// Words. The package uses bleve's storage engine (scorch: dictionaries, postings,
// merging, the files), its term search and its collection of the best; not its query
// layer, for two reasons. Where BM25 needs the mean length, bleve 2.5.7 divides the number of
// different terms, not the number of words, by the number of documents, so longer texts rank
// far too low; this package supplies the true mean. And bleve's disjunctions square the idf
// and scale by a query norm, so the scores of two queries cannot be compared; here a score
// is the plain sum over the terms.
//
// Vectors. Every record that passes the filter is compared; nothing is approximate.
// A vector costs 4 bytes per dimension and record.
package local

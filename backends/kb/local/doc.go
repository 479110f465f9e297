// Package local is the knowledge base's index in this process: BM25 over bleve's
// segments, an exact scan of the vectors, and the fusion of package kb.
//
// Words. Of bleve the storage engine is used (scorch: dictionaries, postings,
// merging, the files), its term search and its collection of the best; not its query
// layer, for two reasons. Bleve 2.5.7 divides the number of different terms, not
// the number of words, by the number of documents where BM25 wants the mean length,
// so longer texts are put far too low; here the true mean is handed in. And its
// disjunctions square the idf and scale by a query norm, so its scores of two queries
// cannot be compared; here a score is the plain sum over the terms.
//
// Vectors. Every record that passes the filter is compared; nothing is approximate.
// It costs 4 bytes a dimension and record.
package local

// Package rank is what every index of records needs to answer alike: the analysis of words,
// synonyms, snippets, and the fusion of rankings (Ranker.Fuse). It ranks by words with BM25 and,
// with an Embedder, by vectors, and joins both by reciprocal rank.
package kb

// Package embeddings simulates OpenAI's embeddings API
// (https://developers.openai.com/api/reference/resources/embeddings, read 2026-11-20).
//
// Its vectors are made of the words of a text: stems, what common words have in common,
// pieces of words, pairs of words, each hashed to places in the vector. So texts about the
// same thing in similar words are near each other, on every machine and every day alike. It
// understands nothing beyond that: what a real model finds in other words it misses.
package embeddings

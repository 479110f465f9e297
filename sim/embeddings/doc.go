// Package embeddings simulates OpenAI's embeddings API
// (https://developers.openai.com/api/reference/resources/embeddings, read 2026-11-20).
//
// Its vectors are made from the words of a text: stems, groups of related common words,
// pieces of words and pairs of words, each hashed to places in the vector. So texts about the
// same thing in similar words are near each other, on every machine and in every run. It
// understands nothing more: a real model also recognises other words for the same thing.
package embeddings

// Package rest simulates the request/response APIs of the providers. Each can inject faults.
//
// Chat Completions (https://developers.openai.com/api/reference/resources/chat, read 2026-11-20), as OpenAI, Azure and
// compatible servers serve them: nothing is kept between requests. The request's messages are replayed through a
// scenario.Dialogue, which answers the last one, so one scenario works by voice and in text.
//
// Embeddings (https://developers.openai.com/api/reference/resources/embeddings, read 2026-11-20): words, their stems,
// pieces and pairs, and groups of related common words are hashed to places in the vector. Texts in similar words get
// similar vectors, the same on every machine.
//
// Images of OpenAI (https://developers.openai.com/api/reference/resources/images), Gemini
// (https://ai.google.dev/api/generate-content) and Imagen (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/
// model-reference/imagen-api, all read 2026-11-20): shapes and colours from a hash of the prompt.
package rest

// Package rest simulates the request/response APIs of the providers. Each can inject faults, and answers as a whole or
// as server-sent events.
//
// [Chat] is OpenAI's Chat Completions API (https://developers.openai.com/api/reference/resources/chat, read
// 2026-11-20), as OpenAI, Azure and compatible servers serve it. It keeps nothing between requests: it reads the
// conversation from the request's messages, replays all but the last through a scenario.Dialogue, and lets the dialogue
// answer the last. So one scenario file works by voice and in text.
//
// [Embeddings] is OpenAI's embeddings API (https://developers.openai.com/api/reference/resources/embeddings, read
// 2026-11-20). It hashes the words of a text, their stems, pieces and pairs, and groups of related common words to
// places in the vector. Texts about the same thing in similar words get similar vectors, the same on every machine. It
// knows no other synonyms, unlike a real model.
//
// [Images] is OpenAI's POST /v1/images/generations (https://developers.openai.com/api/reference/resources/images, read
// 2026-11-20), and Gemini's models/{model}:generateContent of image models and Imagen's models/{model}:predict
// (https://ai.google.dev/api/generate-content and
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/imagen-api, read 2026-11-20), also on
// Vertex's paths, where Google's Go client calls Imagen. The pictures have the requested size: shapes and colours from
// a hash of the prompt, with the prompt's words in them. The same prompt gives the same picture.
package rest

// Package images simulates the image APIs of both providers: OpenAI's
// POST /v1/images/generations (https://developers.openai.com/api/reference/resources/images,
// read 2026-11-20), Gemini's models/{model}:generateContent of image models and Imagen's
// models/{model}:predict (https://ai.google.dev/api/generate-content and
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/imagen-api, read
// 2026-11-20). The last two are also served on Vertex's paths, where Google's Go client calls
// Imagen.
//
// The pictures are real and of the requested size: shapes and colours from a hash of the
// prompt, with the prompt's words in them. The same prompt gives the same picture.
package images

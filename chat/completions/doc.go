// Package completions calls chat models over Chat Completions, with streaming
// (developers.openai.com/api/docs/api-reference/chat, read 2026-11-21): OpenAI's own models, and
// any compatible server behind a base URL.
package completions

// Package completions speaks to chat models over Chat Completions
// (developers.openai.com/api/docs/api-reference/chat, read 2026-11-21), with streaming:
// OpenAI's own, and whatever is compatible behind a base URL.
package completions

// Package completions simulates OpenAI's Chat Completions API
// (https://developers.openai.com/api/reference/resources/chat, read 2026-11-20), as OpenAI,
// Azure and compatible servers serve it: whole answers and streams, tools, several rounds.
//
// It keeps nothing between requests. It reads the conversation from
// the request's messages: all inputs but the last are replayed through a
// scenario.Dialogue, which then answers the last. So the same scenario file works by
// voice and in text.
package completions

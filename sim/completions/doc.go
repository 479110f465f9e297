// Package completions simulates OpenAI's Chat Completions API
// (https://developers.openai.com/api/reference/resources/chat, read 2026-11-20), as OpenAI,
// Azure and compatible servers serve it: whole answers and streams, tools, several rounds.
//
// It keeps nothing between requests. What the model knows of a conversation it reads from
// the request's messages: all but the last input are replayed through a
// scenario.Dialogue, which then answers the last. The same scenario file that speaks by
// voice so answers in text.
package completions

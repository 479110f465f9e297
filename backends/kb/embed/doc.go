// Package embed makes vectors of texts: New over any endpoint that speaks OpenAI's
// embeddings API (https://platform.openai.com/docs/api-reference/embeddings, as
// openai-go v3 has it), and NewCache, which keeps what was paid for once.
package embed

// Package embed makes vectors of texts: New uses any endpoint that speaks OpenAI's embeddings API
// (https://platform.openai.com/docs/api-reference/embeddings, as in openai-go v3), and NewCache
// keeps vectors so that each is paid for once.
package embed

// Package chat is the text agent. It passes a user's message to a chat model, runs the tools that
// the model calls under the same policy and ledger as a voice session, and reports what happens
// in messages of voicegw.v1. It knows neither HTTP nor a provider's JSON: chat/completions calls
// models, and the gateway serves clients.
package chat

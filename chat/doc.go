// Package chat is the text agent: it carries a user's message to a chat model, runs the
// tools that the model calls through the same policy and ledger as a voice session, and
// tells what happens in the messages of voicegw.v1. It knows neither HTTP nor a
// provider's JSON: chat/completions speaks to models, the gateway to clients.
package chat

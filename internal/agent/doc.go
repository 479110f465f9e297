// Package agent defines who answers in a conversation: an agent's instructions, tools, voices and models. An agent is a
// document in YAML or JSON. [Read] reads one and reports all its problems, [Load] reads a folder of them:
//
//	id: billing
//	name: Billing
//	description: Invoices and refunds
//	playbook: |
//	  You answer questions about invoices. …
//	tools: [kb_search, kb_get, end_voice_session]
//	voices: {gemini: Kore, openai: marin}
//
// A [World] says what a document may refer to. A [Catalog] holds all agents of a gateway: the configured one, those of
// files, and edits in the store, where each replaces those before it. Tools list and edit them through a [Desk].
package agent

// Package agent defines agents: instructions, tools, voices and models. An agent is a YAML or JSON document. [Read]
// reads one and reports all its problems, [Load] reads a folder of them:
//
//	id: billing
//	name: Billing
//	description: Invoices and refunds
//	playbook: |
//	  You answer questions about invoices. …
//	tools: [kb_search, kb_get, end_voice_session]
//	voices: {gemini: Kore, openai: marin}
//
// A [World] lists what a document may refer to. A [Catalog] holds all agents of a gateway: the configured one, those of
// files, and stored edits, each layer replacing the one below. Tools list and edit them through a [Desk].
package agent

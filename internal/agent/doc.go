// Package agent is the form of an agent: who answers, what it is told, which tools it may use, and
// with which voice and model it speaks. An agent is a document, in YAML or in JSON; [Read] reads one
// and finds everything that is wrong with it, [Load] reads a folder of them.
//
//	id: billing
//	name: Billing
//	description: Invoices and refunds
//	playbook: |
//	  You answer questions about invoices. …
//	tools: [kb_search, kb_get, end_voice_session]
//	voices: {gemini: Kore, openai: marin}
//
// The package is pure: what a document may refer to comes in as a [World].
package agent

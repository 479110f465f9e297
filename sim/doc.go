// Package sim simulates the realtime providers: one HTTP handler that speaks
// OpenAI's Realtime API and Gemini's Live API over real WebSockets, hears with a
// voice activity detector, answers in synthesized speech, follows a scenario and commits
// faults on demand. The gateway runs the same code against it as against a provider.
// Beside them stand the APIs of one request and one answer: Chat Completions from the same
// scenario, embeddings, and images of both providers.
//
// Server is the handler; Start listens on a loopback port with one. What the
// model says is a scenario.Scenario, what goes wrong a fault.Script; both are YAML files,
// described in docs/simulator.md.
package sim

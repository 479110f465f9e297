// Package sim simulates the realtime providers: one HTTP handler that speaks
// OpenAI's Realtime API and Gemini's Live API over real WebSockets, detects speech with a
// voice activity detector, answers in synthesized speech, follows a scenario and injects
// faults on demand. The gateway runs the same code against it as against a provider.
// It also serves the request/response APIs: Chat Completions from the same
// scenario, embeddings, and the image APIs of both providers.
//
// Server is the handler; Start serves one on a loopback port. A scenario.Scenario defines what
// the model says and a fault.Script what goes wrong; both are YAML files,
// described in docs/simulator.md.
package sim

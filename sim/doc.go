// Package sim simulates the realtime providers: one HTTP handler that speaks OpenAI's Realtime API and Gemini's Live
// API over real WebSockets, detects speech, answers in synthesized speech, follows a scenario and injects faults on
// demand. The gateway runs the same code against it as against a provider. It also serves Chat Completions from the
// same scenario, embeddings, and the image APIs of both providers.
//
// Server is the handler; Start serves one on a loopback port. A scenario.Scenario defines the model's words and a
// fault.Script the faults; docs/simulator.md describes both YAML files.
package sim

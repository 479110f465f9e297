// Package session carries one voice conversation between a client and a model.
//
// A [Manager] admits sessions, counts them and drains them. Each session has four pumps and a
// clock, and all of them have ended when the session is over. A pump that writes exists only
// while something is queued. A pump that reads is a function that its connection calls:
//
//	client --attachment.hear--> uplink --writeModel--> model
//	client <----writeClient---- downlink <--link.hear--- model
//
// Each pump passes what happens to orchestrator.Step and carries out the resulting actions in one
// critical section, on its own goroutine. Carrying out never blocks: it only adds to the two
// queues. So the order of decisions is the order of effects: a flush cannot overtake audio, and
// audio cannot overtake a flush. Audio itself bypasses the orchestrator: it goes from pump to
// queue to pump.
package session

// Package session carries one voice conversation between a client and a model.
//
// A [Manager] admits sessions, counts them and drains them. Each session has four pumps and a clock, which end with
// the session. A writing pump exists only while something is queued. A reading pump is a function that its connection
// calls:
//
//	client --attachment.hear--> uplink --writeModel--> model
//	client <----writeClient---- downlink <--link.hear--- model
//
// Each pump passes events to orchestrator.Step and performs the resulting actions in one critical section. Actions
// never block: they only add to the two queues. So effects have the order of decisions: a flush cannot overtake audio,
// nor audio a flush. Audio bypasses the orchestrator: it goes from pump to queue to pump.
package session

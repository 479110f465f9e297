// Package session carries one voice conversation between a client and a model.
//
// A [Manager] admits sessions, counts them and drains them. Each session has four
// pumps and a clock, and all of them have ended when the session is over (those that write
// are there only while something is queued, and where a loop can watch the connections, the
// two that read are calls of it):
//
//	client --hearClient--> uplink --writeModel--> model
//	client <--writeClient-- downlink <--hearModel--- model
//
// The pumps bring what happens to orchestrator.Step and carry out what it decides
// in one critical section, on the goroutine that brought it. Carrying out never
// blocks: it only puts things into the two queues. So the order of decisions is
// the order of effects, and a flush can neither overtake audio nor be overtaken.
// Audio itself passes by: from pump to queue to pump.
package session

// Package transporttest helps to test both sides of the transport boundary.
//
// [Fake] is a scripted transport.Transport for tests of the code above the
// boundary (sessions, the orchestrator): a test emits events, checks the commands and
// makes the connection fail, stall or refuse. It uses only channels and mutexes, so
// that it works inside a testing/synctest bubble.
//
// [Suite] is the conformance suite for the code below the boundary: every adapter runs it
// against its own scripted provider.
package transporttest

// Package transporttest helps to test both sides of the transport boundary.
//
// [Fake] is a scripted transport.Transport for tests of what stands above the
// boundary (sessions, the orchestrator): a test pushes events, sees the commands and
// makes the connection fail, stall or refuse. It uses channels and mutexes only, so
// that it works inside a testing/synctest bubble.
//
// [Suite] is the conformance suite for what stands below it: every adapter runs it
// against a scripted provider of its own.
package transporttest

// Package transporttest tests adapters: [Suite] is the conformance suite that each of them runs
// against its own scripted provider. [Listener] reads a connection for other tests.
package transporttest

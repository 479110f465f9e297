// Package transporttest tests adapters: [Suite] is the conformance suite that each of them runs
// against its own scripted provider, [Silences] the one for providers that fall silent while a
// conversation is opened. [Listener] reads a connection for other tests.
package transporttest

// Package conversation holds what was said between a user and the agents of a gateway, by
// text and by voice, in order of time. A [Conversation] is a value that its owner changes and
// the store keeps. It is bounded: a summary replaces the oldest entries.
package conversation

// Package conversation holds what was said between a user and the agents of a gateway,
// by text and by voice, in one line of time. A [Conversation] is a value that its holder
// changes and the store keeps; it is bounded, and what is cut off at its beginning stays
// in its summary.
package conversation

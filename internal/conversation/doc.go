// Package conversation holds the transcript between a user and the agents of a gateway, by text and voice, in order of
// time. A [Conversation] is a plain value that its owner changes and the store saves. Its size is bounded: a summary
// replaces the oldest entries.
package conversation

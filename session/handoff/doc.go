// Package handoff moves a conversation from text to voice and back. [Handoffs] makes and redeems tickets, and writes
// into conversations; [Transcript] records a voice session, and [Saver.HandBack] hands it back at the session's end.
package handoff

// Package handoff takes a conversation from text to voice and back. [Desk] makes and redeems
// tickets, and writes into conversations; [Story] notes what is said in a voice session, and
// [Said.Return] hands it back at the session's end.
package handoff

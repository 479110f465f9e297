// Package handoff takes a conversation from text to voice and back: it stands between
// voice sessions, which know nothing of a store, and the store, which knows nothing of
// sessions.
package handoff

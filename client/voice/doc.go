// Package voice is the conversation engine of the command-line clients. It speaks recordings in real time, types,
// interrupts, answers tools' questions, plays the answers on a clock instead of a loudspeaker, and reports the audio it
// played.
//
// A [Conversation] decides what to say and when. It has no clock, socket or goroutine: it takes the time and incoming
// messages, and returns the messages to send. [Run] runs one on a connection. An [Observer] receives every event. A
// [Library] decodes each recording once, for all conversations, and finds the user's speech in it.
package voice

package gemini

import "bytes"

// likeness is what the messages with audio of one model have in common: all but the
// audio. A message that differs from one which scanAudio read in nothing else needs
// no second scan, which costs more than the base64 of a short piece. The zero value
// is like nothing. It is owned by Recv.
type likeness struct {
	// head ends with the quote before the audio, tail begins with the one behind it.
	head, tail []byte
}

// learn takes over the shape of a message in which scanAudio found data, and no text.
func (l *likeness) learn(msg, data []byte) {
	at := cap(msg) - cap(data) // data is a slice of msg
	l.head = append(l.head[:0], msg[:at]...)
	l.tail = append(l.tail[:0], msg[at+len(data):]...)
}

// match returns the audio of a message of the same shape. That there is no quote in
// it is for the decoder to find, as with scanAudio.
func (l *likeness) match(msg []byte) (data []byte, ok bool) {
	if len(l.head) == 0 || !bytes.HasPrefix(msg, l.head) {
		return nil, false
	}
	return bytes.CutSuffix(msg[len(l.head):], l.tail)
}

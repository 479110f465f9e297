package gemini

import "bytes"

// likeness is the constant part of a model's audio messages. A message that differs only in its audio from one that
// scanAudio has read needs no second scan, which would cost more than decoding the base64 of a short piece. The zero
// value matches nothing. It is owned by Recv.
type likeness struct {
	// head ends with the quote before the audio; tail begins with the quote after it.
	head, tail []byte
	rate       int // the sample rate that head or tail states, in Hz
}

// learn remembers the shape of a message in which scanAudio found audio and no text.
func (l *likeness) learn(msg, data []byte) {
	at := cap(msg) - cap(data) // data is a slice of msg
	l.head = append(l.head[:0], msg[:at]...)
	l.tail = append(l.tail[:0], msg[at+len(data):]...)
}

// match returns the audio of a message of the same shape. As with scanAudio, a quote inside
// the audio is found by the decoder.
func (l *likeness) match(msg []byte) (data []byte, ok bool) {
	if len(l.head) == 0 || !bytes.HasPrefix(msg, l.head) {
		return nil, false
	}
	return bytes.CutSuffix(msg[len(l.head):], l.tail)
}

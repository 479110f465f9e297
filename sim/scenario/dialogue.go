package scenario

// Dialogue is one conversation. One goroutine at a time may use it. It must be
// kept when a session is resumed on another connection.
type Dialogue struct{}

// Hear answers an input of the user. An input is complete: for speech it is
// called when the end of speech was detected.
func (d *Dialogue) Hear(h Heard, c Context) Turn { return Turn{} }

// Transcript tells what the transcript of h will say without answering it and
// without changing anything. Wires that send the transcript without an answer
// (create_response false) use it, and then pass the same h to Hear.
func (d *Dialogue) Transcript(h Heard) string { return "" }

// Results answers the results of tool calls: all that came since the last
// answer, in the order of the calls.
func (d *Dialogue) Results(rs []Result, c Context) Turn { return Turn{} }

// Continue answers when a response is asked for without any new input: a
// greeting at the beginning, later something short.
func (d *Dialogue) Continue(c Context) Turn { return Turn{} }

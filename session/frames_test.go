package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/transport"
)

// FramesWith holds a conversation of several turns with continuous speech, and returns the messages and audio of both
// sides for TestSlowCollectors. It must be called in a synctest bubble.
func FramesWith(t *testing.T, follow Follow) string {
	t.Helper()
	st := newStage(t, hearing, func(o *Options) { o.Follow = follow })
	c, model := st.started()
	began := time.Now()
	done := make(chan struct{}) // closed when the user has finished
	go func() {
		defer close(done)
		pass(7 * time.Millisecond) // so that nothing else happens at the same time
		for range 500 {
			c.speak(make([]byte, 640))
			pass(20 * time.Millisecond)
		}
	}()
	for i := range 40 {
		c.say(fmt.Sprintf(`{"type":"input.text","text":"question %d"}`, i))
		pass(50 * time.Millisecond)
		id := fmt.Sprint("r", i)
		model.Emit(transport.ResponseStarted{ID: id})
		for range 5 {
			model.EmitAudio("a"+id, make([]byte, 960))
			pass(20 * time.Millisecond)
		}
		model.Emit(transport.AudioDone{Item: "a" + id}, transport.ResponseDone{ID: id, Status: transport.ResponseCompleted})
		pass(100 * time.Millisecond)
	}
	<-done
	c.say(`{"type":"session.end"}`)
	pass(time.Second)
	var out strings.Builder
	fmt.Fprintf(&out, "%v\n", time.Since(began))
	for _, line := range c.log() {
		fmt.Fprintln(&out, line)
	}
	for _, sent := range model.Commands() {
		fmt.Fprintf(&out, "%T\n", sent)
	}
	fmt.Fprintf(&out, "%d bytes of the user's audio\n", len(model.Audio()))
	return out.String()
}

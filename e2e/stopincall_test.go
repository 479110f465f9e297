package e2e

import (
	"testing"

	"voicegw/protocol"
)

// whileBooking is a conversation in which the model waits for the held tool book.
func whileBooking(t *testing.T, provider, model string) (*stack, *stage, *client) {
	t.Helper()
	tools := newStage(t)
	st := newStack(t, provider, setting{model: model, scenario: bookingThenText, tools: tools.box, speed: 50, playback: 50, firstAudioMS: 10})
	tools.hold("book")
	c := st.start(t, 16000)
	c.say(&protocol.InputText{Text: "book"})
	tools.waitBegun(t, "book")
	return st, tools, c
}

// TestStopWhileAToolRuns: the user presses stop while the model waits for a tool. Whatever the model does (2.5 would
// close the connection after an interruption), no more of the answer is heard, and the next turn works.
func TestStopWhileAToolRuns(t *testing.T) {
	t.Parallel()
	for _, m := range []struct{ provider, model string }{
		{"gemini", "gemini-2.5-flash-native-audio-preview-12-2025"}, {"gemini", "gemini-3.1-flash-live-preview"}, {"gemini", "gemini-3.8-live"},
		{"openai", "gpt-realtime"}, {"openai", "gpt-realtime-2.1"},
	} {
		t.Run(m.model, func(t *testing.T) {
			t.Parallel()
			st, tools, c := whileBooking(t, m.provider, m.model)
			c.say(&protocol.Interrupt{})
			c.say(&protocol.Ping{T: 1})
			waitFor[*protocol.Pong](c)
			tools.release("book")
			st.audit.wait(t, "book", 1)
			c.say(&protocol.InputText{Text: "hello"})
			for ended := false; !ended; {
				switch m := c.next().msg.(type) {
				case *protocol.AudioEnd:
					c.say(&protocol.Playback{ItemID: m.ItemID, PlayedMS: m.AudioMS, Done: true})
				case *protocol.TurnEnded:
					ended = m.Turn > 1
				}
			}
			for _, said := range messages[*protocol.Transcript](c) {
				// On the next question, OpenAI's models also report the result.
				if said.Role == "assistant" && (said.Turn == 1 || m.provider == "gemini" && said.Text != "Yes?") {
					t.Errorf("the client showed %q: %s", said.Text, c.history())
				}
			}
		})
	}
}

// TestTypedWhileAToolRuns: text typed while the model waits for a tool is answered, by models that cancel the call,
// hold the text back, or cannot get it yet.
func TestTypedWhileAToolRuns(t *testing.T) {
	t.Parallel()
	for _, m := range []struct{ provider, model string }{
		{"gemini", "gemini-2.5-flash-native-audio-preview-12-2025"}, {"gemini", "gemini-live-2.5-flash-preview"},
		{"gemini", "gemini-3.1-flash-live-preview"}, {"gemini", "gemini-3.8-live"},
		{"openai", "gpt-realtime"}, {"openai", "gpt-realtime-2.1"},
	} {
		t.Run(m.model, func(t *testing.T) {
			t.Parallel()
			_, tools, c := whileBooking(t, m.provider, m.model)
			c.say(&protocol.InputText{Text: "hello"})
			c.say(&protocol.Ping{T: 1})
			// A model may answer before the pong.
			for answered, free := false, false; !answered || !free; {
				switch msg := c.next().msg.(type) {
				case *protocol.Pong:
					tools.release("book")
					free = true
				case *protocol.AudioEnd:
					c.say(&protocol.Playback{ItemID: msg.ItemID, PlayedMS: msg.AudioMS, Done: true})
				case *protocol.Transcript:
					// OpenAI's models report the result and answer the text in one answer.
					answered = answered || msg.Role == "assistant" && msg.Final && (msg.Text == "Yes?" || m.provider == "openai" && msg.Turn > 1)
				}
			}
			tools.ran(t, "book", 1)
		})
	}
}

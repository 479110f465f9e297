package talk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// gateway is a small gateway without a clock or a socket. It detects speech by level, answers silenceMS after it,
// four times as fast as real time, and flushes on interruption. Tests may set its fields before use.
type gateway struct {
	answerMS  int64
	silenceMS int64
	latencyMS int64
	greets    bool
	mute      bool   // never answers
	noAudio   bool   // ends turns without audio
	fails     bool   // ends turns as failed
	staleMS   int64  // audio sent after a flush
	hangsUp   string // ends the session at the first speech, with this reason
	keepsTurn bool   // never ends a turn
	saysBye   bool   // ends the session after its first answer was heard
	asks      int    // approval requests with the first answer
	forgets   int    // answers to them that it fails to record
	deaf      int    // hears no stretch of speech from this one on; 0 hears all

	send      func(protocol.ServerMessage)
	sendAudio func([]byte)

	inputRate, outputRate int
	playback              []protocol.Playback
	texts                 []string
	ticket                string
	resolved              []protocol.ConfirmationResolve
	framesIn              int
	bytesIn               int
	gone                  bool

	turn, item int
	stretch    int   // stretches of speech so far
	open       bool  // a turn is open
	speech     bool  // the user speaks
	quietMS    int64 // since the last voiced frame
	dueMS      int64 // until the answer begins; -1 if none is due
	leftMS     int64 // of the answer being sent
	sentMS     int64
	current    string // item that the client may still be playing
}

func newGateway() *gateway {
	return &gateway{answerMS: 2000, silenceMS: 500, latencyMS: 200, dueMS: -1}
}

func (g *gateway) hear(m protocol.ClientMessage) {
	switch m := m.(type) {
	case *protocol.Start:
		g.ticket = m.Ticket
		g.inputRate, g.outputRate = m.InputRate, m.OutputRate
		g.send(&protocol.SessionStarted{SessionID: "s-1", Provider: "gemini", Model: "m", InputRate: m.InputRate, OutputRate: m.OutputRate})
		if g.greets {
			g.beginTurn()
		}
	case *protocol.InputText:
		g.texts = append(g.texts, m.Text)
		g.interrupt()
		g.beginTurn()
	case *protocol.Playback:
		g.playback = append(g.playback, *m)
		if m.Done && m.ItemID == g.current {
			g.current = ""
			if g.saysBye {
				g.endTurn("completed")
				g.send(&protocol.SessionEnded{Reason: "tool_ended"})
				g.gone = true
			}
		}
	case *protocol.ConfirmationResolve:
		g.resolve(m)
	case *protocol.End:
		ended := &protocol.SessionEnded{Reason: "client"}
		if g.ticket != "" {
			ended.Handback = &protocol.Handback{ConversationID: "conv-1", Summary: "1 turn."}
		}
		g.send(ended)
		g.gone = true
	}
}

func (g *gateway) hearAudio(frame []byte) {
	g.framesIn++
	g.bytesIn += len(frame)
	ms := audio.MS(g.inputRate, len(frame))
	if _, peak := testutil.Level(frame); peak < -50 {
		if g.quietMS += ms; g.speech && g.quietMS >= g.silenceMS {
			g.speech = false
			g.beginTurn()
		}
		return
	}
	g.quietMS = 0
	if g.speech || g.deaf > 0 && g.stretch+1 >= g.deaf {
		return
	}
	g.stretch++
	g.speech = true
	if g.hangsUp != "" {
		g.send(&protocol.Error{Code: protocol.CodeInternal, Message: g.hangsUp})
		g.gone = true
		return
	}
	g.interrupt()
}

func (g *gateway) beginTurn() {
	g.turn++
	g.open = true
	g.dueMS = g.latencyMS
	g.send(&protocol.TurnStarted{Header: protocol.Header{Turn: g.turn}})
}

func (g *gateway) endTurn(status string) {
	g.open = false
	g.send(&protocol.TurnEnded{
		Header: protocol.Header{Turn: g.turn}, Status: status,
		Usage: protocol.Usage{InputTokens: 10, OutputTokens: 20},
	})
}

func (g *gateway) interrupt() {
	if g.current != "" {
		g.send(&protocol.AudioFlush{Header: protocol.Header{Turn: g.turn}, ItemID: g.current, Reason: "interrupted"})
		if g.staleMS > 0 {
			g.sendAudio(make([]byte, audio.Bytes(g.outputRate, time.Duration(g.staleMS)*time.Millisecond)))
		}
	}
	g.current, g.leftMS, g.dueMS = "", 0, -1
	if g.open {
		g.endTurn("interrupted")
	}
}

func (g *gateway) tick(ms int64) {
	if g.gone || g.mute {
		return
	}
	if g.dueMS >= 0 {
		if g.dueMS -= ms; g.dueMS < 0 {
			g.answer()
		}
		return
	}
	if g.leftMS <= 0 {
		return
	}
	n := min(4*ms, g.leftMS)
	g.leftMS -= n
	g.sentMS += n
	g.sendAudio(bytes.Repeat([]byte{0x10, 0x20}, audio.Bytes(g.outputRate, time.Duration(n)*time.Millisecond)/2))
	if g.leftMS == 0 {
		g.send(&protocol.AudioEnd{Header: protocol.Header{Turn: g.turn}, ItemID: g.current, AudioMS: g.sentMS})
		g.finish()
	}
}

func (g *gateway) answer() {
	if g.noAudio {
		g.finish()
		return
	}
	g.item++
	g.current = fmt.Sprintf("item-%d", g.item)
	g.leftMS, g.sentMS = g.answerMS, 0
	g.send(&protocol.AudioStart{Header: protocol.Header{Turn: g.turn}, ItemID: g.current})
	if g.item == 1 {
		for i := range g.asks {
			g.send(&protocol.ConfirmationRequest{
				Header: protocol.Header{Turn: g.turn}, Token: fmt.Sprintf("t%d", i+1), Tool: "book", Preview: "Book it?",
				Args: json.RawMessage(`{"n":1}`),
			})
		}
	}
	g.send(&protocol.Transcript{Header: protocol.Header{Turn: g.turn}, ID: "u" + g.current, Role: "user", Text: "a question", Final: true})
	g.send(&protocol.Transcript{Header: protocol.Header{Turn: g.turn}, ID: "a" + g.current, Role: "assistant", Text: "an answer", Final: true})
}

// resolve handles the answer to an approval request; its result is a turn of its own.
func (g *gateway) resolve(m *protocol.ConfirmationResolve) {
	g.resolved = append(g.resolved, *m)
	if g.forgets > 0 {
		g.forgets--
		g.send(&protocol.Error{Code: protocol.CodeStoreUnavailable, Message: "It could not be recorded.", Retryable: true})
		return
	}
	outcome := "denied"
	if m.Approved {
		outcome = "approved"
	}
	g.send(&protocol.ConfirmationEnded{Header: protocol.Header{Turn: g.turn}, Token: m.Token, Tool: "book", Outcome: outcome})
	g.interrupt()
	g.beginTurn()
}

func (g *gateway) finish() {
	switch {
	case g.keepsTurn, g.saysBye:
	case g.fails:
		g.send(&protocol.Error{Code: protocol.CodeProviderError, Message: "The model is ill."})
		g.endTurn("failed")
	default:
		g.endTurn("completed")
	}
}

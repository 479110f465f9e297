package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/client/voice"
	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/store"
)

// hearer is a client of one session that reads only as much as the test wants.
type hearer struct {
	t     *testing.T
	conn  *protocol.Conn
	left  left
	item  string            // the newest item with audio
	audio map[string][]byte // by item
	words map[string]string // of the model, by item
	ended map[string]bool   // by item
	over  int               // the newest turn that has ended since it connected
}

func (h *hearer) connect(addr string, start *protocol.Start) {
	h.t.Helper()
	c, err := protocol.Dial(h.t.Context(), "ws://"+addr+"/v1/voice", protocol.DialOptions{Back: start.Resume != nil, Client: &http.Client{Transport: &http.Transport{}}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Abort)
	h.conn, h.over = c, 0
	start.InputRate, start.OutputRate = callerRate, answerRate
	say(h.t, c, start)
}

// hears reads until a condition is true.
func (h *hearer) hears(what string, until func() bool) {
	h.t.Helper()
	for !until() {
		f, err := h.conn.Read()
		if err != nil {
			h.t.Fatalf("waiting for %s: %v", what, err)
		}
		if f.Audio {
			h.audio[h.item] = append(h.audio[h.item], f.Data...)
			continue
		}
		m, err := protocol.ParseServer(f.Data)
		if err != nil {
			h.t.Fatal(err)
		}
		h.left.seq = max(h.left.seq, protocol.HeaderOf(m).Seq)
		switch m := m.(type) {
		case *protocol.SessionStarted:
			h.left.id, h.left.token = m.SessionID, m.ResumeToken
		case *protocol.AudioStart:
			h.item = m.ItemID
		case *protocol.Transcript:
			if m.Role != "user" {
				h.words[m.ID] = m.Text
			}
		case *protocol.AudioEnd:
			h.ended[m.ItemID] = true
		case *protocol.TurnEnded:
			h.over = max(h.over, m.Turn)
		case *protocol.Error:
			h.t.Errorf("it got %s: %s", m.Code, m.Message)
		}
	}
}

// speaks speaks a turn and then sends silence.
func (h *hearer) speaks(r *voice.Recording) {
	h.t.Helper()
	silence := make([]byte, audio.Bytes(callerRate, 1500*time.Millisecond))
	for frame := range slices.Chunk(slices.Concat(r.PCM, silence), audio.Bytes(callerRate, callerFrame)) {
		if err := h.conn.WriteAudio(frame); err != nil {
			h.t.Fatal(err)
		}
	}
}

// TestNodesUnheardAnswer: a gateway is killed after a complete answer: the client got nothing, a part, or
// everything. The next gateway's model speaks exactly the missing part. This also holds for a spoken question that the
// client does not store and Gemini has not fully transcribed yet.
func TestNodesUnheardAnswer(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{simFlags: []string{"--speed=-1"}})
	kept := s.open()
	var all []*hearer
	lacks := []string{"everything", "the end", "nothing", "everything, and it has spoken"}
	for _, provider := range talkerWires {
		for range lacks {
			h := &hearer{t: t, audio: map[string][]byte{}, words: map[string]string{}, ended: map[string]bool{}}
			h.connect(s.gateways[0].addr, &protocol.Start{Provider: provider})
			h.hears("the session", func() bool { return h.left.id != "" })
			all = append(all, h)
		}
	}
	lines, err := voice.LoadLibrary(voice.LibraryOptions{Rate: callerRate, Lines: []string{spokenWords}})
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range all {
		lack := lacks[i%len(lacks)]
		if lack == "everything, and it has spoken" {
			h.speaks(lines.Line(spokenWords))
			continue
		}
		say(t, h.conn, &protocol.InputText{Text: spokenWords})
		switch lack {
		case "the end":
			h.hears("some of the answer", func() bool { return len(h.audio[h.item]) >= 2*answerRate })
		case "nothing":
			h.hears("the answer", func() bool { return h.ended[h.item] })
		}
	}
	for _, h := range all { // OpenAI may transcribe the user's speech after the answer
		testutil.WaitUntil(t, h.left.id+" has a checkpoint of its question and the answer", func() bool {
			c, err := kept.Checkpoints.Load(t.Context(), h.left.id)
			asked := strings.Contains(string(c.State), spokenWords) || slices.ContainsFunc(c.History, func(e conversation.Entry) bool { return e.Text == spokenWords })
			return err == nil && asked && strings.Contains(string(c.State), `"ended":true`)
		})
	}
	s.gateways[0].kill()
	var coming sync.WaitGroup
	whole := make([][]byte, len(all)) // the complete answers
	for i, h := range all {
		whole[i] = h.audio[h.item]
		coming.Go(func() { h.goesOn(s.gateways[1+i%2].addr, lacks[i%len(lacks)]) })
	}
	coming.Wait()
	for i, h := range all {
		if want := whole[min(i-i%len(lacks)+2, len(all)-1)]; i%len(lacks) == 0 && !bytes.Equal(h.audio[h.item], want) {
			t.Errorf("%s got %d bytes of an answer of %d", h.left.id, len(h.audio[h.item]), len(want))
		}
	}
	for _, h := range all {
		testutil.WaitUntil(t, h.left.id+" is over", func() bool {
			r, err := kept.Directory.Find(t.Context(), h.left.id)
			return err == nil && r.State == store.SessionOver
		})
	}
	s.close()
}

// goesOn resumes through another gateway and reads the missing part.
func (h *hearer) goesOn(addr, lack string) {
	h.conn.Abort()
	resume := &protocol.Resume{SessionID: h.left.id, Token: h.left.token, LastSeq: h.left.seq}
	before := h.item
	if before != "" {
		resume.Audio = &protocol.ResumeAudio{ItemID: before, ReceivedMS: int64(len(h.audio[before]) / (answerRate / 1000 * 2))}
	}
	h.left.id = ""
	h.connect(addr, &protocol.Start{Resume: resume})
	h.hears("its session", func() bool { return h.left.id != "" })
	turn := 1
	if lack == "nothing" { // the end of the first turn comes before the answer
		say(h.t, h.conn, &protocol.InputText{Text: "my colour is turquoise"})
		turn = 2
	}
	h.hears("an answer", func() bool { return h.over >= turn })
	name := fmt.Sprintf("%s, which lacks %s,", h.left.id, lack)
	want := map[string]string{"everything": spokenAnswer, "everything, and it has spoken": spokenAnswer, "the end": "I go on after The harbour", "nothing": "Noted."}[lack]
	if h.item == before || !strings.HasPrefix(h.words[h.item], want) {
		h.t.Errorf("%s got %q in %s after %s, want %q", name, h.words[h.item], h.item, before, want)
	}
	answers := 0
	for item := range h.audio {
		if item != before {
			answers++
		}
	}
	if answers != 1 {
		h.t.Errorf("%s got %d more answers", name, answers)
	}
	say(h.t, h.conn, &protocol.End{})
}

package voice

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/audio"
	"voicegw/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden conversations")

// TestGoldenConversations replays the conversations of testdata. Each has a description, a script of incoming events by
// ms, and the expected output of the conversation.
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(ar.Files) == 1 {
				ar.Files = append(ar.Files, txtar.File{Name: "want"})
			}
			got := perform(t, string(ar.Files[0].Data))
			if *update {
				ar.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(ar.Files[1].Data), got); diff != "" {
				t.Errorf("the conversation differs (-want +got):\n%s", diff)
			}
		})
	}
}

// stage is a conversation, and its recorded output.
type stage struct {
	t     *testing.T
	c     *Conversation
	o     Options
	words []Words
	// approval applies to the following turns.
	approval Approval
	out      strings.Builder

	frames int // in a row, since the last line
	late   time.Duration
}

var stageEpoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// perform runs a script: first the settings and turns, then the events by ms.
func perform(t *testing.T, script string) string {
	s := &stage{t: t, o: Options{
		Start:       protocol.Start{InputRate: 8000, OutputRate: 8000},
		Frame:       20 * time.Millisecond,
		Silence:     make([]byte, audio.Bytes(8000, 20*time.Millisecond)),
		ConnectTime: 10 * time.Second, PendingTime: 5 * time.Second, GoodbyeTime: 5 * time.Second, Patience: 20 * time.Second,
		Buffers: make([]time.Duration, 1), Resume: ResumeOptions{Within: 30 * time.Second, Random: func() float64 { return 0.5 }},
	}}
	s.o.Words = func(index, _, _ int) Words { return s.words[index] }
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		ms, err := strconv.Atoi(word)
		switch {
		case word == "":
		case err != nil:
			s.prepare(word, rest)
		default:
			s.begin()
			s.until(stageEpoch.Add(time.Duration(ms) * time.Millisecond))
			s.happens(stageEpoch.Add(time.Duration(ms)*time.Millisecond), rest)
		}
	}
	return s.out.String()
}

// prepare reads a line of the settings and turns.
func (s *stage) prepare(verb, rest string) {
	next, words := Turn{WaitFor: ForAnswer, Patience: 20 * time.Second, Approval: s.approval}, Words{}
	switch verb {
	case "approve": // the questions of the next turn, after half a second
		s.approval, s.o.ThinkTime = ApprovalYes, 500*time.Millisecond
		return
	case "push-to-talk":
		s.o.PushToTalk = true
		return
	case "every":
		f := strings.Fields(rest)
		s.o.Outages = append(s.o.Outages, Outage{Act: Act(f[0]), First: s.duration(f[1]), Every: s.duration(f[2])})
		return
	case "type":
		next.Act, words.Text = Type, rest
	case "say": // a second of sound
		pcm := make([]byte, audio.Bytes(8000, time.Second))
		for i := range pcm {
			pcm[i] = byte(i*i%251) & 0x3f
		}
		r, err := NewRecording("said", audio.Clip{Rate: 8000, PCM: pcm}, 8000)
		if err != nil {
			s.t.Fatal(err)
		}
		next.Act, words.Recording, s.o.Microphone = Say, r, true
	case "stop": // after this much of the previous turn's answer
		next.Act, next.Interrupts, next.InterruptAfter = Stop, true, s.duration(rest)
	case "wait":
		next.Act, next.Wait = Wait, s.duration(rest)
	case "drop", "reload", "roam":
		f := strings.Fields(rest)
		next.Act, next.Wait = Act(verb), s.duration(f[0])
		if len(f) > 1 {
			next.From, next.After = map[string]From{"answer": FromAnswer, "speech": FromSpeech}[f[1]], s.duration(f[2])
		}
	default:
		s.t.Fatalf("unknown setting %s", verb)
	}
	s.o.Turns, s.words = append(s.o.Turns, next), append(s.words, words)
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *stage) begin() {
	if s.c == nil {
		s.c = New(s.o, s, stageEpoch)
		s.settle(stageEpoch)
	}
}

// until advances the time, and does everything that becomes due.
func (s *stage) until(end time.Time) {
	for now := stageEpoch; ; {
		next := s.c.wake(now)
		if next.IsZero() || !next.Before(end) {
			return
		}
		now = next
		s.settle(now)
	}
}

// settle does the same steps as Run.
func (s *stage) settle(now time.Time) {
	for more := true; more; {
		s.c.tick(now)
		for _, m := range s.c.conn.take(nil) {
			text, err := protocol.EncodeClient(m)
			if err != nil {
				s.t.Fatal(err)
			}
			s.write(now, "> %s", text)
		}
		_, due, ok := s.c.frame(now)
		if ok {
			s.frames++
			s.late = max(s.late, now.Sub(due))
		}
		for _, w := range s.c.conn.requests {
			s.write(now, "! %s", map[connRequest]string{requestDial: "dial", requestReset: "reset", requestGoAway: "go away"}[w])
		}
		s.c.conn.requests = nil
		more = ok || s.c.conn.sendable()
	}
}

// happens performs the event of a line.
func (s *stage) happens(now time.Time, what string) {
	s.settle(now)
	verb, rest, _ := strings.Cut(what, " ")
	if verb != "pass" {
		s.write(now, "%s", what)
	}
	closed := func() error {
		code, err := strconv.Atoi(rest)
		if err != nil {
			return errors.New(rest)
		}
		return websocket.CloseError{Code: websocket.StatusCode(code)}
	}
	switch verb {
	case "hear":
		s.c.hearText(now, []byte(rest))
	case "audio":
		s.c.hearAudio(now, make([]byte, audio.Bytes(8000, s.duration(rest))))
	case "bytes":
		n, err := strconv.Atoi(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.c.hearAudio(now, make([]byte, n))
	case "lost":
		s.c.lost(now, closed())
	case "dialled":
		wanted, replaces := s.c.dialled(now)
		s.write(now, "  wanted %v, replaces %v", wanted, replaces)
	case "undialled":
		s.c.conn.dialFailed(now, closed())
	case "displaced":
		s.c.conn.displaced(now, closed())
	case "leave":
		s.c.Leave(now)
	case "pass":
	default:
		s.t.Fatalf("unknown event %s", verb)
	}
	s.settle(now)
}

// write adds a line, preceded by the number of frames sent since the last one.
func (s *stage) write(now time.Time, format string, args ...any) {
	if s.frames > 0 {
		fmt.Fprintf(&s.out, "      > %d frames, up to %d ms late\n", s.frames, s.late.Milliseconds())
		s.frames, s.late = 0, 0
	}
	fmt.Fprintf(&s.out, "%5d %s\n", now.Sub(stageEpoch).Milliseconds(), fmt.Sprintf(format, args...))
}

// Heard implements Observer.
func (s *stage) Heard(time.Time, protocol.ServerMessage) {}

// HeardAudio implements Observer.
func (s *stage) HeardAudio(now time.Time, pcm []byte, i *Item) {
	if i == nil {
		s.write(now, "  * %d bytes belong to no answer", len(pcm))
	}
}

// Played implements Observer.
func (s *stage) Played(i *Item) {
	fmt.Fprintf(&s.out, "        * of %s %d bytes came and %d were heard\n", i.ID, i.Bytes, i.Heard)
}

// Underrun implements Observer.
func (s *stage) Underrun(_ int, gap time.Duration) {
	fmt.Fprintf(&s.out, "        * silence of %v in an answer\n", gap)
}

// kinds are the recorded events.
var kinds = map[Kind]string{
	Began: "began", FirstAudio: "first audio", Answered: "answered", Failed: "failed", Stuck: "stuck", CutOff: "cut off", Dropped: "frames dropped",
	Violation: "violation", Refused: "refused", Lost: "lost", Disconnected: "went away", Retrying: "retrying", Resumed: "came back", ResumeFailed: "not back",
	OutageSkipped: "not cut", Question: "question", Displaced: "displaced", MissedMessages: "missed messages", MissedAudio: "missed audio", AudioRepeated: "audio again", SpeechLost: "unsaid frames",
}

// Happened implements Observer.
func (s *stage) Happened(now time.Time, e Event) {
	name := kinds[e.Kind]
	if name == "" {
		return
	}
	line := "  * " + name
	if e.X != nil {
		line += fmt.Sprintf(" (turn %d)", e.X.Number)
	}
	if e.N != 0 {
		line += fmt.Sprintf(" %d", e.N)
	}
	if e.Text != "" {
		line += ": " + e.Text
	}
	if e.Err != nil {
		line += ": " + e.Err.Error()
	}
	if r := e.Resumption; r != nil {
		line += fmt.Sprintf(" %s after %v, %v of it from session.start, try %d, snapshot %v", r.Act, r.Away, r.Took, r.Tries, r.Snapshot)
	}
	s.write(now, "%s", line)
}

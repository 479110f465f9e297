package live

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/internal/livewire"
	"voicegw/internal/testutil"
	"voicegw/transport"
)

// piece returns ms milliseconds of output, loud or silent.
func piece(ms int64, loud bool) []byte {
	pcm := make([]byte, ms*bytesPerMS)
	for i := range pcm {
		if loud && i%2 == 1 {
			pcm[i] = byte(4 + i%7)
		}
	}
	return pcm
}

// eventsOf returns the events of a dialog as text; consecutive audio is one line.
func eventsOf(d *dialog) (lines []string) {
	for {
		switch ev := d.Next().(type) {
		case nil:
			for _, r := range d.requests() {
				lines = append(lines, fmt.Sprintf("  delegation %s %q", r.id, r.words))
			}
			if r := d.reminders(); r != remindNothing {
				lines = append(lines, fmt.Sprintf("  remind %d", r))
			}
			return lines
		case *transport.AudioOut:
			if n := len(lines); n > 0 && lines[n-1] == "  audio "+ev.Item {
				continue
			}
			lines = append(lines, "  audio "+ev.Item)
		case transport.Transcript:
			lines = append(lines, fmt.Sprintf("  %s %s %q final=%v", ev.Role, ev.Item, ev.Text, ev.Final))
		default:
			lines = append(lines, fmt.Sprintf("  %T%+v", ev, ev))
		}
	}
}

// play runs one line of a script.
func play(t *testing.T, d *dialog, line string) []string {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	var out []string
	sound := func(loud bool) {
		ms, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for ; ms > 0; ms -= livewire.FrameMS {
			d.sound(piece(min(ms, livewire.FrameMS), loud))
			for _, l := range eventsOf(d) {
				if n := len(out); n == 0 || out[n-1] != l {
					out = append(out, l)
				}
			}
		}
	}
	var from, until int64
	var text string
	switch verb {
	case "loud", "quiet":
		sound(verb == "loud")
	case "said", "heard":
		if _, err := fmt.Sscanf(rest, "%d %d %q", &from, &until, &text); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if verb == "said" {
			d.said(text, from, until)
		} else {
			d.heard(text, from, until)
		}
	case "delegate":
		if _, err := fmt.Sscanf(rest, "%s %d", &text, &from); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		d.delegated(text, from)
	case "answered": // the delegation has its result
		d.working = false
		d.told()
	default:
		t.Fatalf("unknown line: %q", line)
	}
	return append(out, eventsOf(d)...)
}

// TestConversations plays the scripts in testdata. Each line is one input; the events that it causes follow, indented.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := newDialog()
		var got strings.Builder
		for line := range strings.Lines(string(ar.Files[0].Data)) {
			if line = strings.TrimSpace(line); line != "" {
				fmt.Fprintf(&got, "%s\n", line)
				for _, l := range play(t, &d, line) {
					fmt.Fprintln(&got, l)
				}
			}
		}
		if os.Getenv("UPDATE") != "" {
			ar.Files = append(ar.Files[:1], txtar.File{Name: "events", Data: []byte(got.String())})
			if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := string(ar.Files[1].Data); got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got.String(), want)
		}
	}
}

// TestRecording: in the events of a recorded session, each delegation has its words and each answer ends.
func TestRecording(t *testing.T) {
	file, err := os.Open("../../../shared/fixtures/live/delegation_to_client.jsonl")
	if err != nil {
		t.Skip("../shared has no recording")
	}
	defer func() { _ = file.Close() }()
	d := newDialog()
	var lines []string
	for s := bufio.NewScanner(file); s.Scan(); {
		var one struct{ Event json.RawMessage }
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		ev, err := livewire.ParseServerEvent(one.Event)
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Type {
		case livewire.InputTranscript:
			d.heard(ev.Delta, ev.StartMS, ev.EndMS)
		case livewire.OutputTranscript:
			d.said(ev.Delta, ev.StartMS, ev.EndMS)
		case livewire.DelegationCreated:
			d.delegated(ev.Delegation.ID, ev.OffsetMS)
		case livewire.CommentaryAppended:
			d.working = false
			d.told()
		}
		lines = append(lines, eventsOf(&d)...)
	}
	got := strings.Join(lines, "\n")
	for _, want := range []string{
		`delegation item_EWIVgjaxCfSlntqN73664 "Please check the deployment status of the staging environment and tell me the result."`,
		`assistant item_1 "Okay, checking now." final=true`,
		`assistant item_2 "Staging is healthy:" final=false`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// TestNoWordIsClipped: a faint beginning or end of an answer is not cut off, and the silence around it is dropped.
func TestNoWordIsClipped(t *testing.T) {
	for _, pause := range []int64{0, 100, 200, 500} {
		d := newDialog()
		speech := testutil.SpeechLike(sampleRate, 700e6, 3)
		faint := piece(40, false)
		for i := 0; i < len(faint); i += 2 {
			faint[i] = 20 // far below the gate
		}
		track := append(piece(1000, false), faint...)
		track = append(track, speech...)
		track = append(track, piece(pause, false)...)
		track = append(track, speech...)
		track = append(track, piece(1500, false)...)
		var heard []byte
		for len(track) > 0 {
			n := min(len(track), livewire.FrameMS*bytesPerMS)
			d.sound(track[:n])
			track = track[n:]
			for ev := d.Next(); ev != nil; ev = d.Next() {
				if out, ok := ev.(*transport.AudioOut); ok {
					heard = append(heard, out.PCM...)
				}
			}
		}
		want := append(append([]byte(nil), faint...), speech...)
		if !strings.HasPrefix(string(heard), string(want)) {
			t.Errorf("pause %d: the first words are clipped", pause)
		}
		if !strings.HasSuffix(strings.TrimRight(string(heard), "\x00"), strings.TrimRight(string(speech), "\x00")) {
			t.Errorf("pause %d: the last words are clipped", pause)
		}
		if most := len(want) + len(speech) + (2*tailMS+2*leadMS+livewire.FrameMS)*bytesPerMS; len(heard) > most {
			t.Errorf("pause %d: %d bytes arrive, want at most %d", pause, len(heard), most)
		}
	}
}

// FuzzDialog: for inputs in any order, each answer begins and ends once, in order, with its audio inside, and no
// transcript shrinks.
func FuzzDialog(f *testing.F) {
	f.Add([]byte{0, 9, 1, 3, 2, 40, 3, 7, 4, 200, 0, 0, 255, 1, 9})
	f.Add([]byte{2, 0, 2, 255, 0, 1, 4, 4, 4, 4, 3, 3, 0, 200, 1, 250})
	f.Fuzz(func(t *testing.T, in []byte) {
		d := newDialog()
		c := checker{t: t, texts: map[string]string{}, done: map[string]bool{}}
		for i := 0; i+1 < len(in); i += 2 {
			at, n := d.now(), int64(in[i+1])
			switch in[i] % 7 {
			case 0:
				d.sound(piece(n, true))
			case 1:
				d.sound(piece(10*n, false))
			case 2:
				d.said("word ", at+10*n-1000, at+10*n-800)
			case 3:
				d.heard("word ", at+10*n-1000, at+10*n-900)
			case 4:
				d.delegated(strconv.Itoa(i), at+10*n-1000)
			case 5:
				d.said("word", -n, 1<<62)
			case 6:
				d.working = !d.working
				d.told()
			}
			c.take(&d)
		}
		for end := d.now() + unsaidMS + quietMS; d.now() <= end; {
			d.working = false
			d.sound(piece(1000, false))
		}
		c.take(&d)
		if c.open != "" {
			t.Errorf("%s never ends", c.open)
		}
	})
}

type checker struct {
	t     *testing.T
	open  string
	item  string
	texts map[string]string
	done  map[string]bool
}

func (c *checker) take(d *dialog) {
	for ev := d.Next(); ev != nil; ev = d.Next() {
		switch ev := ev.(type) {
		case transport.ResponseStarted:
			if c.open != "" || c.done[ev.ID] {
				c.t.Fatalf("%s begins in %s", ev.ID, c.open)
			}
			c.open, c.item = ev.ID, ""
		case transport.ResponseDone:
			if ev.ID != c.open || c.item != "" {
				c.t.Fatalf("%s ends in %s with the audio of %s open", ev.ID, c.open, c.item)
			}
			c.open, c.done[ev.ID] = "", true
		case *transport.AudioOut:
			if c.open == "" || len(ev.PCM)%2 != 0 || c.done[ev.Item] {
				c.t.Fatalf("audio of %s in %q", ev.Item, c.open)
			}
			c.item = ev.Item
		case transport.AudioDone:
			if ev.Item != c.item {
				c.t.Fatalf("the audio of %s ends in that of %s", ev.Item, c.item)
			}
			c.item, c.done[ev.Item] = "", true
		case transport.Transcript:
			if !strings.HasPrefix(ev.Text, c.texts[ev.Item]) {
				c.t.Fatalf("%q shrinks to %q", c.texts[ev.Item], ev.Text)
			}
			c.texts[ev.Item] = ev.Text
		}
	}
	d.requests()
	d.reminders()
}

// TestRequestWords: a request has the user's words, spoken or typed, that the model has not answered.
func TestRequestWords(t *testing.T) {
	for name, tt := range map[string]struct {
		answerMS int
		answer   string
		typed    bool
		want     string
	}{
		"an answer":          {6000, "The lake is cold today.", false, "And the weather?"},
		"a question":         {1000, "How are you?", false, "And the weather?"},
		"perhaps a promise":  {1000, "I will look.", false, "I am Ada. And the weather?"},
		"no answer":          {0, "", true, "I am Ada. And the weather?"},
		"typed after speech": {1000, "Hello Ada.", true, "And the weather?"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDialog()
			play := func(ms int, loud bool) {
				for range ms / 100 {
					pcm := make([]byte, 100*bytesPerMS)
					if loud {
						copy(pcm, testutil.SpeechLike(sampleRate, 100*time.Millisecond, 1))
					}
					d.sound(pcm)
				}
			}
			play(1000, false)
			d.heard("I am Ada.", 200, 800)
			play(1000, false)
			if tt.answer != "" {
				from := d.now()
				play(tt.answerMS, true)
				d.said(tt.answer, from, from+int64(tt.answerMS))
				play(2000, false)
			}
			if tt.typed {
				d.typed("And the weather?")
			} else {
				d.heard("And the weather?", d.now()-400, d.now())
			}
			d.delegated("item_1", d.now())
			play(1000, false)
			if r := d.requests(); len(r) != 1 || r[0].words != tt.want {
				t.Errorf("%+v, want %q", r, tt.want)
			}
		})
	}
}

// TestResultInTheSameAnswer: a result that follows the filler without a pause counts as spoken.
func TestResultInTheSameAnswer(t *testing.T) {
	d := newDialog()
	d.heard("Is it open?", 0, 800)
	d.delegated("item_1", 800)
	d.said("Okay, checking now.", 1000, 2000)
	d.told()
	before := d.phrases
	d.said("It is open.", 2000, 3000)
	if d.unsaid >= 0 || d.phrases != before+1 {
		t.Errorf("the result is still unspoken, since %d", d.unsaid)
	}
	if text := string(d.open.text); text != "Okay, checking now. It is open." {
		t.Errorf("the answer is %q", text)
	}
}

// TestResponseContinues: the result continues the response of the filler, unless the user speaks or types in between. A
// late transcript does not count as speech.
func TestResponseContinues(t *testing.T) {
	for name, tt := range map[string]struct {
		between func(d *dialog)
		answers int
	}{
		"nothing":    {func(*dialog) {}, 1},
		"late words": {func(d *dialog) { d.heard(" please", 700, 900) }, 1},
		"speech":     {func(d *dialog) { d.heard("Wait.", d.now()-200, d.now()) }, 2},
		"typed":      {func(d *dialog) { d.typed("wait") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDialog()
			d.heard("Is it open?", 0, 800)
			d.delegated("item_1", 800)
			d.said("Okay, checking.", 1000, 2000)
			d.sound(piece(4000, false))
			tt.between(&d)
			d.working = false
			d.told()
			d.said("It is open.", d.now(), d.now()+1000)
			begun := 0
			for ev := d.Next(); ev != nil; ev = d.Next() {
				if _, ok := ev.(transport.ResponseStarted); ok {
					begun++
				}
			}
			if begun != tt.answers {
				t.Errorf("%d answers, want %d", begun, tt.answers)
			}
		})
	}
}

package gemini

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/sim/wire"
)

// recorded is one line of a recording.
type recorded struct {
	Dir  string          `json:"dir"`
	Data json.RawMessage `json:"data"`
}

// knownDifferences lists the intended differences of the simulator, by recording and frame.
var knownDifferences = map[string]map[string]string{}

// TestRecordings sends the client's side of each recorded session to the simulator, verbatim (also the ids of calls), and
// compares the answers: kinds of frames, their order and their key sets. A run of audio and transcripts counts as one
// frame, because its division depends on its words.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t), "fixtures", "gemini", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			script := readRecording(t, file)
			synctest.Test(t, func(t *testing.T) {
				want, got := playRecording(t, script)
				diff := differences(want, got)
				for _, d := range diff {
					if reason := knownDifferences[filepath.Base(file)][d]; reason != "" {
						t.Logf("known: %s: %s", d, reason)
						continue
					}
					t.Errorf("%s", d)
				}
				if t.Failed() {
					t.Logf("recorded and simulated:\n%s", cmp.Diff(want, got))
				}
			})
		})
	}
}

func readRecording(t *testing.T, file string) []recorded {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// playRecording sends the recorded messages, and after each batch reads until the simulator has been quiet for a minute
// of fake time.
func playRecording(t *testing.T, script []recorded) (want, got []string) {
	b := newBench(t, wire.Options{})
	c := b.dial(betaPath+"?key=replay", nil)
	pump := startPump(c)
	defer pump.stop()
	for i, r := range script {
		switch r.Dir {
		case "sent":
			c.send(string(r.Data))
		case "received":
			var f received
			if err := json.Unmarshal(r.Data, &f.val); err != nil {
				t.Fatal(err)
			}
			want = collapse(want, shape(f.val))
		}
		if i+1 == len(script) || (r.Dir == "received" && script[i+1].Dir == "sent") {
			for _, f := range pump.quiet(t) {
				got = collapse(got, shape(f.val))
			}
			want, got = collapse(want, "-- client --"), collapse(got, "-- client --")
		}
	}
	return want, got
}

// pump reads in the background, because a cancelled read would end the connection.
type pump struct {
	// frames goes from the reading goroutine to the test; the sender closes it.
	frames chan received
	cancel context.CancelFunc
	err    error // the reason of the end; set before frames is closed
}

func startPump(c *client) *pump {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pump{frames: make(chan received, 4096), cancel: cancel}
	go func() {
		defer close(p.frames)
		for {
			_, data, err := c.ws.Read(ctx)
			if err != nil {
				p.err = err
				return
			}
			f := received{raw: data, at: time.Now()}
			if json.Unmarshal(data, &f.val) != nil {
				f.val = map[string]any{"malformed": true}
			}
			p.frames <- f
		}
	}()
	return p
}

func (p *pump) stop() {
	p.cancel()
	for range p.frames {
	}
}

// quiet returns the frames up to a minute without any.
func (p *pump) quiet(t *testing.T) []received {
	t.Helper()
	var out []received
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				t.Fatal(errors.New("the simulator closed the connection"))
			}
			out = append(out, f)
		case <-time.After(time.Minute):
			return out
		}
	}
}

// shape is a frame's set of keys, nested, without values.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for i, k := range keys {
			// The model chooses the arguments, and lists of counts have an entry for each modality.
			if sub := shape(v[k]); sub != "" && k != "args" {
				keys[i] = k + sub
			}
		}
		return "{" + strings.Join(keys, " ") + "}"
	case []any:
		var shapes []string
		for _, e := range v {
			shapes = append(shapes, shape(e))
		}
		slices.Sort(shapes)
		return "[" + strings.Join(slices.Compact(shapes), " ") + "]"
	}
	return ""
}

// collapse appends a shape. A run of audio and output transcripts is one entry, like one of input transcripts; 3.8's
// empty messages are left out.
func collapse(list []string, s string) []string {
	speech := strings.Contains(s, "inlineData") || strings.Contains(s, "outputTranscription")
	if speech {
		s = "speech"
	}
	if s == "{}" {
		return list
	}
	repeats := s == "speech" || strings.Contains(s, "inputTranscription") || s == "-- client --"
	if repeats && len(list) > 0 && list[len(list)-1] == s {
		return list
	}
	return append(list, s)
}

// differences lists the differences of two lists, by position and shape.
func differences(want, got []string) []string {
	var out []string
	for i := range max(len(want), len(got)) {
		var w, g string
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			out = append(out, "recorded "+w+", simulated "+g)
		}
	}
	return out
}

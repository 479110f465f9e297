package openai

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/sim/wire"
)

// differences are the allowed differences of the simulator from a recording: the event type, or type and key path, and
// the reason.
var differences = map[string]string{
	"conversation.item.input_audio_transcription.delta":     "comes from another model beside the answer: only its own order is compared (wire facts: asynchronous)",
	"conversation.item.input_audio_transcription.completed": "the same",
	"conversation.item.input_audio_transcription.failed":    "the same",
	"rate_limits.updated":  "is missing in many recordings; compared for its keys, not for its place",
	"conversation.created": "a beta event that a few proxies still send; OpenAI's GA recordings have none",
}

// entry is a line of a recording.
type entry struct {
	Dir  string          `json:"dir"`
	Data json.RawMessage `json:"data"`
	ev   event
}

func readRecording(t *testing.T, name string) []entry {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var e entry
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Dir == "close" {
			continue
		}
		e.ev = event{}
		if err := json.Unmarshal(e.Data, &e.ev); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, e)
	}
	return out
}

// replay drives the simulator with the messages of a recording's client.
type replay struct {
	t   *testing.T
	c   *client
	pcm []byte
	ids map[string]string // ids of the recording, to those of the simulator
	got []received
	saw map[string]int // events of each type in the recording so far
}

// next is the next 100 ms of the user's audio, silence after its end.
func (p *replay) next() string {
	n := min(4800, len(p.pcm))
	chunk := append(slices.Clone(p.pcm[:n]), make([]byte, 4800-n)...)
	p.pcm = p.pcm[n:]
	return base64.StdEncoding.EncodeToString(chunk)
}

// send sends a recorded frame with the simulator's ids and complete audio.
func (p *replay) send(e entry) {
	ev := e.ev
	if ev.kind() == "input_audio_buffer.append" && len(ev.text("audio")) <= 64 {
		ev["audio"] = p.next()
	}
	frame, err := json.Marshal(ev)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(frame)
	for old, now := range p.ids {
		text = strings.ReplaceAll(text, `"`+old+`"`, `"`+now+`"`)
	}
	p.c.send(text)
}

// await waits until the simulator has sent as many of a type as the recording, at most two minutes.
func (p *replay) await(e entry) {
	kind := e.ev.kind()
	if strings.HasSuffix(kind, ".delta") || differences[kind] != "" {
		return
	}
	p.saw[kind]++
	for range 12_000 {
		p.got = append(p.got, p.c.take(0)...)
		n := 0
		for _, g := range p.got {
			if g.kind() == kind {
				n++
				if n == p.saw[kind] {
					p.pair(map[string]any(e.ev), map[string]any(g.event))
					return
				}
			}
		}
		pass(10 * time.Millisecond)
	}
	p.t.Fatalf("the recording has %d %s, the simulator only sent: %s", p.saw[kind], kind, kinds(p.got))
}

// pair matches the ids of the recording with those of the simulator.
func (p *replay) pair(a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			for k := range x {
				p.pair(x[k], y[k])
			}
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range min(len(x), len(y)) {
				p.pair(x[i], y[i])
			}
		}
	case string:
		y, ok := b.(string)
		prefix, _, has := strings.Cut(x, "_")
		if ok && has && y != "" && slices.Contains([]string{"item", "call", "resp", "conv"}, prefix) {
			p.ids[x] = y
		}
	}
}

// shape is the order of the events that must be equal: deltas are collapsed, audio and transcript deltas together.
func shape(list []event) []string {
	var out []string
	for _, e := range list {
		k := e.kind()
		if differences[k] != "" {
			continue
		}
		if k == "response.output_audio.delta" || k == "response.output_audio_transcript.delta" {
			k = "response.output_audio(_transcript).delta"
		}
		if n := len(out); n > 0 && out[n-1] == k && strings.HasSuffix(k, ".delta") {
			continue
		}
		out = append(out, k)
	}
	return out
}

// keys are the key paths of a value; elements of arrays share theirs.
func keys(v any, path string, into map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			into[path+"."+k] = true
			keys(e, path+"."+k, into)
		}
	case []any:
		for _, e := range x {
			keys(e, path+"[]", into)
		}
	}
}

// keySets are the key paths of each type of event, over all events of the type.
func keySets(list []event) map[string]string {
	sets := map[string]map[string]bool{}
	for _, e := range list {
		k := e.kind()
		if sets[k] == nil {
			sets[k] = map[string]bool{}
		}
		keys(map[string]any(e), "", sets[k])
	}
	out := map[string]string{}
	for k, set := range sets {
		var paths []string
		for p := range set {
			paths = append(paths, p)
		}
		sort.Strings(paths)
		out[k] = strings.Join(paths, "\n")
	}
	return out
}

// TestRecordedSessions: the simulator, driven by the client frames of the recordings, answers with the same types in the
// same order and with the same keys.
func TestRecordedSessions(t *testing.T) {
	dir := shared(t, "fixtures/openai")
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			entries := readRecording(t, file)
			pcm := wav(t, "audio/pydantic_my_name_is_marcelo_16k.wav")
			want, got := play(t, entries, pcm)
			if diff := cmp.Diff(shape(want), shape(got)); diff != "" {
				t.Errorf("order of events (-recorded +simulated):\n%s", diff)
			}
			wantKeys, gotKeys := keySets(want), keySets(got)
			for kind := range wantKeys {
				if gotKeys[kind] == "" {
					if differences[kind] == "" || kind == "conversation.item.input_audio_transcription.completed" {
						t.Errorf("%s was recorded and not simulated", kind)
					}
					continue
				}
				if diff := cmp.Diff(wantKeys[kind], gotKeys[kind]); diff != "" {
					t.Errorf("keys of %s (-recorded +simulated):\n%s", kind, diff)
				}
			}
		})
	}
}

// play runs a recording against a simulator and returns the recorded and the simulated events, up to the recording's end.
func play(t *testing.T, entries []entry, pcm []byte) (want, got []event) {
	name, path := "gpt-realtime", "/v1/realtime"
	for _, e := range entries {
		if m := e.ev.text("session.model"); m != "" && e.ev.kind() == "session.created" {
			name = m
		}
		if e.Dir == "received" {
			want = append(want, e.ev)
			if e.ev.kind() == "response.content_part.added" && e.ev["content"] != nil {
				path = "/openai/v1/realtime" // Azure alone repeats the part
			}
		}
	}
	bubble(t, wire.Options{}, func(r *rig) {
		p := &replay{t: t, c: r.connect(path + "?model=" + url.QueryEscape(name)), pcm: pcm, ids: map[string]string{}, saw: map[string]int{}}
		for _, e := range entries {
			if e.Dir == "sent" {
				p.send(e)
			} else {
				p.await(e)
			}
		}
		p.got = append(p.got, p.c.take(2*time.Second)...)
		for _, g := range p.got {
			got = append(got, g.event)
		}
		synctest.Wait()
	})
	// Messages after the recording's end are not compared.
	if n := len(want); n > 0 {
		end := want[n-1].kind()
		count := 0
		for _, e := range want {
			if e.kind() == end {
				count++
			}
		}
		for i, e := range got {
			if e.kind() == end {
				if count--; count == 0 {
					tail := got[i+1:]
					got = slices.Clone(got[:i+1])
					for _, e := range tail { // events that accompany the answer may be late
						if differences[e.kind()] != "" {
							got = append(got, e)
						}
					}
					break
				}
			}
		}
	}
	if len(got) == 0 {
		t.Fatal(fmt.Errorf("the simulator sent nothing"))
	}
	return want, got
}

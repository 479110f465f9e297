package gemini

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"voicegw/audio"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// TestConversations plays the conversations of testdata in fake time. Each file begins with a description of its subject,
// followed by sections: scenario and faults (YAML, optional), options (JSON, optional), client (commands, below) and want.
// want has no audio and no times: they change with the voice.
//
//	path /ws/…           the path of later connections
//	key k                the key of later connections
//	dial {json}          connect and send that; HANDLE is the newest handle, HANDLE1 the first
//	send {json}          a text frame; ID1, ID2 are the ids of the last calls
//	speak words          say that in real time, then be silent for 1.5 s
//	begin words          say that in real time
//	silence 500ms        send silence in real time
//	wait 2s              send nothing
//	until name           wait until a frame of that name has come
//	hang up              close the connection
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = playConversation(t, ar) })
			if *update {
				rewriteWant(t, file, ar, got)
				return
			}
			if diff := cmp.Diff(section(ar, "want"), got); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

func section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func rewriteWant(t *testing.T, file string, ar *txtar.Archive, got string) {
	t.Helper()
	kept := ar.Files[:0]
	for _, f := range ar.Files {
		if f.Name != "want" {
			kept = append(kept, f)
		}
	}
	ar.Files = append(kept, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
		t.Fatal(err)
	}
}

// talk is a conversation in progress.
type talk struct {
	t    *testing.T
	b    *bench
	path string
	key  string
	c    *client
	p    *pump
	log  []string

	over    bool       // the end of this connection is in the log
	frames  []received // since the last client command in the log
	handles []string   // in order of arrival
	callIDs []string
}

func playConversation(t *testing.T, ar *txtar.Archive) string {
	var o wire.Options
	if s := section(ar, "scenario"); s != "" {
		sc, err := scenario.Parse("scenario", []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		o.Scenario = sc
	}
	if s := section(ar, "faults"); s != "" {
		f, err := scenario.ParseFaults("faults", []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = f
	}
	if s := section(ar, "options"); s != "" {
		if err := json.Unmarshal([]byte(s), &o); err != nil {
			t.Fatal(err)
		}
	}
	o.Stats = &wire.Stats{}
	k := &talk{t: t, b: newBench(t, o), path: betaPath, key: "golden"}
	for line := range strings.Lines(section(ar, "client")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, arg, _ := strings.Cut(line, " ")
		k.command(verb, arg)
	}
	k.drain()
	k.hangUp()
	return strings.Join(k.log, "\n") + "\n"
}

func (k *talk) command(verb, arg string) {
	k.t.Helper()
	switch verb {
	case "path":
		k.path = arg
	case "key":
		k.key = arg
	case "dial":
		k.note("dial", arg)
		k.c = k.b.dial(k.path+"?key="+k.key, nil)
		k.p, k.over = startPump(k.c), false
		k.c.send(k.withHandles(arg))
		k.listen(time.Second)
	case "send":
		k.note("send", arg)
		if k.over {
			k.t.Fatalf("the connection is closed:\n%s", strings.Join(k.log, "\n"))
		}
		for i, id := range k.callIDs {
			arg = strings.ReplaceAll(arg, fmt.Sprintf("ID%d", i+1), id)
		}
		k.c.send(arg)
		k.collect()
	case "speak":
		k.note("speak", arg)
		k.stream(speechPCM(arg))
		k.stream(make([]byte, 16*2*1500))
	case "begin":
		k.note("begin", arg)
		k.stream(speechPCM(arg))
	case "silence":
		k.note("silence", arg)
		k.stream(make([]byte, audio.Bytes(earRate, k.duration(arg))))
	case "wait":
		k.listen(k.duration(arg))
		k.note("wait", arg)
	case "until":
		k.until(arg)
	case "hang":
		k.note("hang up", "")
		k.hangUp()
	default:
		k.t.Fatalf("unknown command %q", verb)
	}
}

// withHandles inserts the received handles.
func (k *talk) withHandles(text string) string {
	for i := len(k.handles); i > 0; i-- { // HANDLE12 before HANDLE1
		text = strings.ReplaceAll(text, fmt.Sprintf("HANDLE%d", i), k.handles[i-1])
	}
	if len(k.handles) > 0 {
		text = strings.ReplaceAll(text, "HANDLE", k.handles[len(k.handles)-1])
	}
	return text
}

func (k *talk) duration(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		k.t.Fatal(err)
	}
	return d
}

// speechPCM is speech of these words, at the input rate.
func speechPCM(words string) []byte {
	return voice.New(voice.Options{Rate: earRate, Voice: "Kore"}).Speak(words).PCM
}

// stream sends audio in real time, 100 ms a frame.
func (k *talk) stream(pcm []byte) {
	const frame = earRate / 10 * 2
	for len(pcm) > 0 {
		n := min(frame, len(pcm))
		k.c.sendJSON(map[string]any{"realtimeInput": map[string]any{
			"audio": map[string]any{"data": pcm[:n], "mimeType": "audio/pcm;rate=16000"},
		}})
		pcm = pcm[n:]
		k.listen(100 * time.Millisecond)
	}
}

// listen collects the frames of a duration.
func (k *talk) listen(d time.Duration) {
	deadline := time.After(d)
	for {
		select {
		case f, ok := <-k.p.frames:
			if !ok {
				k.ended()
				<-deadline
				return
			}
			k.take(f)
		case <-deadline:
			k.collect()
			return
		}
	}
}

// collect takes the frames so far.
func (k *talk) collect() {
	synctest.Wait()
	for {
		select {
		case f, ok := <-k.p.frames:
			if !ok {
				k.ended()
				return
			}
			k.take(f)
		default:
			return
		}
	}
}

// until waits for a frame, unless it has arrived since the last command.
func (k *talk) until(want string) {
	k.t.Helper()
	is := func(f received) bool { return name(f) == want || f.key() == want }
	if slices.ContainsFunc(k.frames, is) {
		return
	}
	deadline := time.After(time.Hour)
	for {
		select {
		case f, ok := <-k.p.frames:
			if !ok {
				k.ended()
				return
			}
			k.take(f)
			if is(f) {
				k.collect()
				return
			}
		case <-deadline:
			k.flush()
			k.t.Fatalf("no %s arrived in an hour; so far:\n%s", want, strings.Join(k.log, "\n"))
		}
	}
}

// drain collects frames until a minute without any.
func (k *talk) drain() {
	for k.p != nil {
		select {
		case f, ok := <-k.p.frames:
			if !ok {
				k.ended()
				return
			}
			k.take(f)
		case <-time.After(time.Minute):
			k.flush()
			return
		}
	}
}

func (k *talk) ended() {
	k.flush()
	closed := make(chan received)
	close(closed)
	k.p.frames = closed
	line := "< dropped"
	var ce websocket.CloseError
	if errors.As(k.p.err, &ce) {
		line = fmt.Sprintf("< close %d %q", ce.Code, ce.Reason)
	}
	if !k.over {
		k.log = append(k.log, line)
	}
	k.over = true
}

func (k *talk) hangUp() {
	if k.c == nil {
		return
	}
	k.flush()
	_ = k.c.ws.Close(websocket.StatusNormalClosure, "")
	k.p.stop()
	k.c, k.p = nil, nil
	// The simulator releases the conversation when it has seen the end.
	synctest.Wait()
}

func (k *talk) take(f received) {
	k.frames = append(k.frames, f)
	if u, ok := f.val["sessionResumptionUpdate"].(map[string]any); ok && u["resumable"] == true {
		handle, _ := u["newHandle"].(string)
		k.handles = append(k.handles, handle)
	}
	if tc, ok := f.val["toolCall"].(map[string]any); ok {
		k.callIDs = nil
		list, _ := tc["functionCalls"].([]any)
		for _, c := range list {
			m, _ := c.(map[string]any)
			id, _ := m["id"].(string)
			k.callIDs = append(k.callIDs, id)
		}
	}
}

var longText = regexp.MustCompile(`^\{"setup":\{"model":"([^"]*)".*$`)

func (k *talk) note(verb, arg string) {
	k.flush()
	arg = longText.ReplaceAllString(arg, "setup $1")
	k.log = append(k.log, strings.TrimSpace("> "+verb+" "+arg))
}

// flush writes the collected frames to the log.
func (k *talk) flush() {
	frames := k.frames
	k.frames = nil
	for i := 0; i < len(frames); i++ {
		n := name(frames[i])
		if n == "" {
			continue
		}
		j := i + 1
		for collapses(n) && j < len(frames) && (name(frames[j]) == n || name(frames[j]) == "") {
			j++
		}
		next := ""
		if j < len(frames) {
			next = name(frames[j])
		}
		line := strings.TrimSpace("< " + n + " " + detail(n, frames[i:j], next))
		i = j - 1
		if last := len(k.log) - 1; last >= 0 && n == "speech" && strings.HasPrefix(k.log[last], "< speech") {
			continue
		}
		k.log = append(k.log, line)
	}
}

// detail is a frame's content, except the parts that depend on the voice.
func detail(n string, frames []received, next string) string {
	switch n {
	case "speech":
		if next == "generationComplete" {
			return fmt.Sprintf("%q", said(frames))
		}
	case "toolCall":
		var out []string
		list, _ := frames[0].val["toolCall"].(map[string]any)["functionCalls"].([]any)
		for _, c := range list {
			m, _ := c.(map[string]any)
			id := "no id"
			if s, _ := m["id"].(string); s != "" {
				id = "id"
			}
			args, _ := json.Marshal(m["args"])
			out = append(out, fmt.Sprintf("%v(%s) %s", m["name"], args, id))
		}
		return strings.Join(out, ", ")
	case "toolCallCancellation":
		ids, _ := frames[0].val[n].(map[string]any)["ids"].([]any)
		return fmt.Sprintf("%d", len(ids))
	case "goAway":
		return fmt.Sprint(frames[0].val[n])
	case "sessionResumptionUpdate":
		return fmt.Sprint("resumable ", frames[0].val[n].(map[string]any)["resumable"])
	case "turnComplete+usage":
		status, _ := frames[0].content()["interactionStatus"].(string)
		if u, _ := frames[0].val["usageMetadata"].(map[string]any); len(u) == 0 {
			status += " usage {}"
		}
		return strings.TrimSpace(status)
	}
	return ""
}

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/testutil"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

// relayFlag selects the relay to measure: this program, the test program of another revision, or nginx.
var relayFlag = flag.String("relay", "", "the relay that BenchmarkRelay and BenchmarkIdle measure: a test program of e2e, or nginx; default this one")

const nginxRelay = "nginx"

// apart puts the relay into another network namespace, so that its system calls do not include its peers' work: the
// namespace's name, and the addresses of this side and of the relay.
var apart = flag.String("apart", "", "network namespace of the relay, and the addresses of both sides: NAME,10.0.0.1,10.0.0.2")

// place returns a command's prefix to run it as a relay, and the addresses of both sides.
func place() (prefix []string, here, there string) {
	name, addrs, ok := strings.Cut(*apart, ",")
	if !ok {
		return nil, "127.0.0.1", "127.0.0.1"
	}
	here, there, _ = strings.Cut(addrs, ",")
	return []string{"ip", "netns", "exec", name}, here, there
}

// echoProvider is a provider's server that answers each audio frame with a frame of the model, of the same length.
type echoProvider struct {
	pcm   []byte // the model's frame
	quiet bool   // it does not answer
}

func (e echoProvider) start(b testing.TB) *httptest.Server {
	b.Helper()
	_, here, _ := place()
	ln, err := net.Listen("tcp", here+":0")
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(e)
	_ = srv.Listener.Close() // it has accepted no connection
	srv.Listener = ln
	srv.Start()
	return srv
}

// ServeHTTP speaks enough of both providers' wires; with floodVoice it sends tiny events endlessly.
func (e echoProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	ctx := context.Background()
	isGemini := strings.Contains(r.URL.Path, "BidiGenerateContent")
	hello := `{"type":"session.created","event_id":"e","session":{"type":"realtime","id":"sess_1","model":"gpt-realtime","audio":{"input":{},"output":{}}}}`
	var setup []byte
	if isGemini {
		hello = `{"setupComplete":{}}`
		if _, setup, err = conn.Read(ctx); err != nil {
			return
		}
	}
	if conn.Write(ctx, websocket.MessageText, []byte(hello)) != nil {
		return
	}
	if !isGemini {
		if _, setup, err = conn.Read(ctx); err != nil {
			return
		}
		conn.Write(ctx, websocket.MessageText, []byte(strings.Replace(hello, "created", "updated", 1)))
		if !e.quiet {
			conn.Write(ctx, websocket.MessageText, []byte(`{"type":"response.created","event_id":"e","response":{"id":"resp_1","status":"in_progress"}}`))
		}
	}
	for bytes.Contains(setup, []byte(`"`+floodVoice+`"`)) {
		if conn.Write(ctx, websocket.MessageText, []byte(`{}`)) != nil {
			return
		}
	}
	answer := modelAudio(isGemini, e.pcm)
	for buf := make([]byte, 64<<10); ; {
		_, rd, err := conn.Reader(ctx)
		if err != nil {
			return
		}
		n, _ := io.ReadFull(rd, buf) // the next Reader fails as this one does
		_, _ = io.Copy(io.Discard, rd)
		if e.quiet || !bytes.Contains(buf[:min(n, 100)], []byte(`"audio":`)) {
			continue // for example the notice that the audio pauses
		}
		for range max(1, n/base64.StdEncoding.EncodedLen(len(e.pcm))) { // the gateway may have joined frames
			if conn.Write(ctx, websocket.MessageText, answer) != nil {
				return
			}
		}
	}
}

// modelAudio is a provider's message with a piece of the model's speech.
func modelAudio(isGemini bool, pcm []byte) []byte {
	data := base64.StdEncoding.EncodeToString(pcm)
	if isGemini {
		return []byte(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"` + data + `"}}]}}}`)
	}
	return []byte(`{"type":"response.output_audio.delta","event_id":"event_1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"` + data + `"}`)
}

// relayLoad is the traffic of a measurement: each session sends a frame of audio per interval.
type relayLoad struct {
	sessions int
	frame    time.Duration
	kind     string
}

// The kinds of traffic.
const (
	speech  = "speech"  // the user speaks, and the model sends as much
	reports = "reports" // the same, with playback reports five times a second
	silence = "silence" // both are silent
)

var relayLoads = []relayLoad{
	{200, 20 * time.Millisecond, speech}, {200, 20 * time.Millisecond, reports}, {200, 20 * time.Millisecond, silence},
	{20, 20 * time.Millisecond, speech},
	{1000, 100 * time.Millisecond, speech}, {1000, 100 * time.Millisecond, silence},
}

func (l relayLoad) name() string { return fmt.Sprintf("%dx%v/%s", l.sessions, l.frame, l.kind) }

// BenchmarkRelay measures a relay's CPU and allocations for each frame and direction, the round trip, and memory (RSS)
// for each session under each load. See relayFlag.
func BenchmarkRelay(b *testing.B) {
	for _, w := range relayWays {
		for _, load := range relayLoads {
			if w.secure && load != relayLoads[0] || *relayFlag == nginxRelay && (w.secure || load.kind == reports) {
				continue
			}
			b.Run(w.name()+"/"+load.name(), func(b *testing.B) {
				rate := w.rate()
				talk := testutil.SpeechLike(rate, 2*time.Second, 1)
				if load.kind == silence {
					talk = testutil.Silence(rate, 2*time.Second)
				}
				frame := talk[:audio.Bytes(rate, load.frame)]
				srv := echoProvider{frame, load.kind == silence}.start(b)
				defer srv.Close()
				r := startRelay(b, w.provider, srv.URL, w.secure)
				empty := r.resident(b)
				callers := make([]*relayCaller, load.sessions)
				for i := range callers {
					callers[i] = r.call(b, w, talk, len(frame))
					defer callers[i].conn.CloseNow()
					go callers[i].listen() // until it is closed
				}
				for b.Loop() {
					measureRelay(b, r, callers, load)
				}
				b.ReportMetric(float64(r.resident(b)-empty)/1024/float64(load.sessions), "KB-rss/session")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkIdle opens 2,000 sessions as fast as possible and measures memory (RSS) for each session: at once, and after
// a collection.
func BenchmarkIdle(b *testing.B) {
	const sessions = 2000
	for _, w := range relayWays {
		if w.secure {
			continue
		}
		b.Run(w.name(), func(b *testing.B) {
			frame := testutil.Silence(w.rate(), 20*time.Millisecond)
			for b.Loop() {
				srv := echoProvider{frame, true}.start(b)
				r := startRelay(b, w.provider, srv.URL, false)
				empty := r.resident(b)
				var all sync.WaitGroup
				callers := make([]*relayCaller, sessions)
				for start := range 8 {
					all.Go(func() {
						for i := start; i < sessions; i += 8 {
							callers[i] = r.call(b, w, frame, len(frame))
						}
					})
				}
				all.Wait()
				if b.Failed() {
					b.FailNow()
				}
				b.ReportMetric(float64(r.resident(b)-empty)/1024/sessions, "KB-rss/new-session")
				if r.ask != nil {
					if _, err := r.ask("settle"); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.resident(b)-empty)/1024/sessions, "KB-rss/settled-session")
				for _, c := range callers {
					c.conn.CloseNow()
				}
				srv.Close()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startNginx starts nginx as a WebSocket proxy in front of base.
func startNginx(b testing.TB, base string) *relay {
	b.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		b.Skip("nginx is not installed:", err)
	}
	free, err := testutil.FreeAddr()
	if err != nil {
		b.Fatal(err)
	}
	prefix, _, there := place()
	addr := strings.Replace(free, "127.0.0.1", there, 1)
	dir := b.TempDir()
	conf := fmt.Sprintf(`
daemon off; master_process off; pid %[1]s/pid; error_log stderr crit;
events { worker_connections 16384; }
http {
	access_log off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server {
		listen %[2]s;
		location / {
			proxy_pass %[3]s; proxy_http_version 1.1; proxy_read_timeout 1h;
			proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
		}
	}
}`, dir, addr, base)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		b.Fatal(err)
	}
	args := append(prefix, program, "-p", dir, "-c", file)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to finish
		_ = cmd.Wait()         // killed
	})
	r := &relay{cmd: cmd, url: "http://" + addr, raw: true}
	for {
		conn, _, err := ws.Dial(b.Context(), r.url+"/BidiGenerateContent", nil, ws.Options{})
		if err == nil {
			_ = conn.CloseNow()
			return r
		}
		if b.Context().Err() != nil || cmd.ProcessState != nil {
			b.Fatal("nginx does not start:", err)
		}
	}
}

// resident returns the process's resident memory (proc(5), statm), in bytes.
func (r *relay) resident(b *testing.B) int {
	b.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", r.cmd.Process.Pid))
	if err != nil {
		b.Skip("there is no /proc here:", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		b.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// relayCaller is a client of a gateway, or one that speaks a provider's wire through a proxy.
type relayCaller struct {
	conn   relayConn
	audio  websocket.MessageType
	frames [][]byte                // the messages with audio, to repeat
	parts  func(answer []byte) int // bytes of audio in a message of that type; 0 for other messages
	piece  int                     // bytes of audio in an answer to one frame

	mu   sync.Mutex  // guards the following field
	sent []time.Time // of the frames without an answer

	bytes     atomic.Int64 // of audio received
	roundTrip []time.Duration
}

type relayConn interface {
	Read() (websocket.MessageType, []byte, error)
	Write(typ websocket.MessageType, p []byte) error
	CloseNow() error
}

// call starts a session. The user repeats pcm, in frames of that size in bytes.
func (r *relay) call(b *testing.B, w relayWay, pcm []byte, frame int) *relayCaller {
	b.Helper()
	if !r.raw {
		conn := benchClient(b, r.url, w.rate()).Conn
		return &relayCaller{conn: conn, audio: websocket.MessageBinary, frames: slices.Collect(slices.Chunk(pcm, frame)), piece: frame,
			parts: func(p []byte) int { return len(p) }}
	}
	path, hello, setup, head := "/v1/realtime", 1, `{"type":"session.update"}`, `{"type":"input_audio_buffer.append","audio":"`
	tail := `"}`
	if w.provider == "gemini" {
		path, hello, setup = "/BidiGenerateContent", 0, `{"setup":{}}`
		head, tail = `{"realtimeInput":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"`, `"}}}`
	}
	conn, _, err := ws.Dial(context.Background(), r.url+path, nil, ws.Options{Limit: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	for range hello {
		if _, _, err := conn.Read(); err != nil {
			b.Fatal(err)
		}
	}
	if err := conn.Write(websocket.MessageText, []byte(setup)); err != nil {
		b.Fatal(err)
	}
	if _, _, err := conn.Read(); err != nil {
		b.Fatal(err)
	}
	answer := len(modelAudio(w.provider == "gemini", pcm[:frame]))
	var messages [][]byte
	for piece := range slices.Chunk(pcm, frame) {
		messages = append(messages, []byte(head+base64.StdEncoding.EncodeToString(piece)+tail))
	}
	return &relayCaller{conn: conn, audio: websocket.MessageText, frames: messages, piece: answer, parts: func(p []byte) int {
		if len(p) < answer {
			return 0
		}
		return answer
	}}
}

// relayTime is the length of one measurement.
const relayTime = 5 * time.Second

// reportEvery is the interval of a client's reports.
const reportEvery = 200 * time.Millisecond

// speak sends a frame per interval until stop.
func (c *relayCaller) speak(offset time.Duration, load relayLoad, stop time.Time) (frames int64) {
	next := time.Now().Add(offset)
	reported := next
	for ; next.Before(stop); next = next.Add(load.frame) {
		<-time.After(time.Until(next))
		if load.kind != silence {
			c.mu.Lock()
			c.sent = append(c.sent, time.Now())
			c.mu.Unlock()
		}
		if c.conn.Write(c.audio, c.frames[int(frames)%len(c.frames)]) != nil {
			return frames
		}
		frames++
		if load.kind == reports && next.Sub(reported) >= reportEvery {
			reported = next
			ms := int64(c.heard() * float64(load.frame.Milliseconds()))
			text, err := protocol.EncodeClient(&protocol.Playback{ItemID: "item_1", ReceivedMS: ms, PlayedMS: ms, Seq: 1})
			if err != nil || c.conn.Write(websocket.MessageText, text) != nil {
				return frames
			}
		}
	}
	return frames
}

// heard returns the number of received audio frames.
func (c *relayCaller) heard() float64 { return float64(c.bytes.Load()) / float64(c.piece) }

// listen reads the answers until the connection ends.
func (c *relayCaller) listen() {
	left := 0
	for {
		typ, p, err := c.conn.Read()
		if err != nil {
			return
		}
		if typ != c.audio {
			continue
		}
		n := c.parts(p)
		c.bytes.Add(int64(n))
		c.mu.Lock()
		for left += n; left >= c.piece && len(c.sent) > 0; left -= c.piece {
			c.roundTrip = append(c.roundTrip, time.Since(c.sent[0]))
			c.sent = c.sent[1:]
		}
		c.mu.Unlock()
	}
}

// speakAll makes all callers speak and returns the number of frames they sent.
func speakAll(callers []*relayCaller, load relayLoad, d time.Duration) (frames int64) {
	var sent atomic.Int64
	var speakers sync.WaitGroup
	stop := time.Now().Add(d)
	for i, c := range callers {
		speakers.Go(func() {
			sent.Add(c.speak(time.Duration(i)*load.frame/time.Duration(len(callers)), load, stop))
		})
	}
	speakers.Wait()
	return sent.Load()
}

// beginTime is the time for the start of all conversations, which is not measured.
const beginTime = time.Second

// relayFigures are the results of a measurement: CPU in µs and allocations for each frame, and round trips.
type relayFigures struct {
	cpu, mallocs float64
	p50, p99     time.Duration
}

func measureRelay(b *testing.B, r *relay, callers []*relayCaller, load relayLoad) (out relayFigures) {
	b.Helper()
	speakAll(callers, load, beginTime)
	had := 0.0
	for _, c := range callers {
		c.mu.Lock()
		c.roundTrip = nil
		c.mu.Unlock()
		had += c.heard()
	}
	var before, after relayMemory
	var err error
	if r.ask != nil {
		if before, err = r.ask("now"); err != nil {
			b.Fatal(err)
		}
	}
	cpu := r.cpu(b)
	sent := speakAll(callers, load, relayTime)
	cpu = r.cpu(b) - cpu
	if r.ask != nil {
		if after, err = r.ask("now"); err != nil {
			b.Fatal(err)
		}
	}
	var trips []time.Duration
	got := -had
	for _, c := range callers {
		c.mu.Lock()
		trips = append(trips, c.roundTrip...)
		c.mu.Unlock()
		got += c.heard()
	}
	frames := float64(sent) + got
	out.cpu = float64(cpu.Microseconds()) / frames
	b.ReportMetric(out.cpu, "cpu-us/frame")
	if r.ask != nil {
		out.mallocs = float64(after.Mallocs-before.Mallocs) / frames
		b.ReportMetric(out.mallocs, "mallocs/frame")
	}
	if load.kind == silence || len(trips) == 0 {
		return out
	}
	b.ReportMetric(100*got/float64(sent), "%delivered")
	slices.Sort(trips)
	out.p50, out.p99 = trips[len(trips)/2], trips[len(trips)*99/100]
	b.ReportMetric(float64(out.p50.Microseconds()), "p50-us")
	b.ReportMetric(float64(out.p99.Microseconds()), "p99-us")
	return out
}

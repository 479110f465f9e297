package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/chat"
	"voicegw/chat/completions"
	"voicegw/image"
	"voicegw/image/genai"
	imageopenai "voicegw/image/openai"
	"voicegw/internal/bounded"
	"voicegw/kb/embed"
)

// mostAboveRest is the most memory that one answer may take, in bytes.
const mostAboveRest = 64 << 20

// mostUnread is how many bytes a server can be rid of that nobody reads: what the kernel
// and net/http hold for a connection, of at most four tries or images.
const mostUnread = 4 * (16 << 20)

// hostile is a server that answers every request alike, and counts what it is rid of.
type hostile struct {
	url  string
	sent atomic.Int64
}

// serve answers over plain sockets: net/http's server would not write most of it.
func serve(t *testing.T, answer func(w io.Writer, r *http.Request)) *hostile {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{url: "http://" + l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, r.Body); err == nil {
					answer(&counted{c, &h.sent}, r)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return h
}

type counted struct {
	io.Writer
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// repeat writes text until nobody takes it any more.
func repeat(w io.Writer, text string) {
	block := []byte(strings.Repeat(text, 1+(64<<10)/len(text)))
	for {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// head is that of an answer whose body ends with the connection.
func head(status int, headers ...string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%s\r\n", status, http.StatusText(status), strings.Join(append(headers, ""), "\r\n"))
}

// attack is one way of answering.
type attack struct {
	name string
	// words are some of those of the error.
	words  string
	answer func(w io.Writer, r *http.Request)
}

// endless is an answer that begins with first and goes on with more.
func endless(name, words, first, more string) attack {
	return attack{name, words, func(w io.Writer, _ *http.Request) {
		if _, err := io.WriteString(w, first); err == nil {
			repeat(w, more)
		}
	}}
}

// common are what any server may do. ok is the head of a good answer.
func common(ok string) []attack {
	return []attack{
		endless("endless body", "than", ok, "x"),
		endless("endless error 400", "status 400 has more than 65536 bytes", head(400), "x"),
		endless("endless error 500", "status 500 has more than 65536 bytes", head(500, "Content-Type: application/json"), `{"error":`),
		endless("endless head", "head of the answer", "HTTP/1.1 200 OK\r\n", "X: y\r\n"),
		endless("endless 103s", "head of the answer", "", "HTTP/1.1 103 Early Hints\r\n\r\n"),
		endless("redirect", "redirects are not followed", head(307, "Location: /again", "Content-Length: 0"), " "),
		{"gzip bomb", "compresses its answer", func(w io.Writer, _ *http.Request) {
			if _, err := io.WriteString(w, strings.TrimSuffix(ok, "\r\n")+"Content-Encoding: gzip\r\n\r\n"); err == nil {
				repeat(gzip.NewWriter(w), "\x00")
			}
		}},
	}
}

// jsonAttacks are those of an API that answers in JSON.
func jsonAttacks() []attack {
	ok := head(200, "Content-Type: application/json")
	return append(common(ok),
		endless("endless text in JSON", "bytes", ok+`{"data":[{"b64_json":"`, "A"),
		endless("deep JSON", "levels deep", ok, "["),
		endless("a billion elements", "elements", ok+`{"data":[`, "{},"),
		endless("a billion numbers", "elements", ok+`{"data":[{"embedding":[`, "0,"),
	)
}

// large is a good answer that is just within its bound, in bytes.
func large(most int, begin, end string) attack {
	return attack{"as large as may be", "", func(w io.Writer, _ *http.Request) {
		size := (most - len(begin) - len(end)) / 4 * 4
		_, _ = io.WriteString(w, head(200, "Content-Type: application/json")+begin)
		block := strings.Repeat("A", 64<<10)
		for ; size > 0; size -= min(size, len(block)) {
			_, _ = io.WriteString(w, block[:min(size, len(block))])
		}
		_, _ = io.WriteString(w, end)
	}}
}

func chatAttacks() []attack {
	ok := head(200, "Content-Type: text/event-stream")
	chunk := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + "}]}\n\n" }
	return append(common(ok),
		endless("endless line", "one piece", ok+`data: {"a":"`, "x"),
		endless("endless event", "one piece", ok, "data: x\n"),
		endless("endless comments", "bytes", ok, ":\n\n"),
		endless("endless text", "bytes", ok, chunk(`{"content":"and so on and on"}`)),
		endless("endless reasoning", "bytes", ok, chunk(`{"reasoning_content":"and so on and on"}`)),
		endless("endless arguments", "bytes", ok, chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"b","arguments":"and so on"}}]}`)),
		endless("endless calls", "more than 32 tools", ok, chunk(`{"tool_calls":[{"index":0,"function":{"name":"b","arguments":"{}"}}]}`)),
		endless("deep JSON", "levels deep", ok+"data: ", `{"a":`),
		endless("a billion elements", "elements", ok+`data: {"choices":[`, "{},"),
	)
}

// TestHostileAnswers: no answer of anybody is read without an end. Every client gets
// answers that do not stop; each ends with an error that says why, and takes little
// memory. go test ./e2e -run TestHostileAnswers -v prints how much.
func TestHostileAnswers(t *testing.T) {
	clients := []struct {
		name    string
		attacks []attack
		ask     func(ctx context.Context, base string) error
	}{
		{"chat model", chatAttacks(), func(ctx context.Context, base string) error {
			c, err := completions.New(completions.Options{BaseURL: base, Model: "m", Retries: -1})
			if err != nil {
				return err
			}
			_, err = c.Complete(ctx, chat.Prompt{Messages: []chat.Message{{Role: chat.RoleUser, Text: "Hello"}}}, func(string) {})
			return err
		}},
		{"embeddings", jsonAttacks(), func(ctx context.Context, base string) error {
			c, err := embed.New(embed.Options{BaseURL: base, Model: "m", Retries: -1, Timeout: time.Minute})
			if err != nil {
				return err
			}
			_, err = c.EmbedQuery(ctx, "Hello")
			return err
		}},
		{"images, OpenAI", append(jsonAttacks(), large(image.MaxAnswer, `{"data":[{"b64_json":"`, `"}]}`)), func(ctx context.Context, base string) error {
			_, err := imageopenai.New(imageopenai.Options{BaseURL: base}).Generate(ctx, image.Request{Prompt: "a fox", Width: 1024, Height: 1024, Count: 4})
			return err
		}},
		{"images, Google", append(jsonAttacks(), large(4<<20, `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"`, `"}}]}}]}`)), func(ctx context.Context, base string) error {
			g, err := genai.New(ctx, genai.Options{BaseURL: base, APIKey: "k"})
			if err != nil {
				return err
			}
			_, err = g.Generate(ctx, image.Request{Prompt: "a fox", Width: 1024, Height: 1024, Count: 4})
			return err
		}},
		{"images, Imagen", []attack{large(8<<20, `{"predictions":[{"mimeType":"image/png","bytesBase64Encoded":"`, `"}]}`)}, func(ctx context.Context, base string) error {
			g, err := genai.New(ctx, genai.Options{BaseURL: base, APIKey: "k", Model: "imagen-4.0-generate-001"})
			if err != nil {
				return err
			}
			_, err = g.Generate(ctx, image.Request{Prompt: "a fox", Width: 1024, Height: 1024, Count: 4})
			return err
		}},
	}
	t.Cleanup(bounded.Shared().CloseIdleConnections)
	t.Logf("%-16s %-22s %10s %10s  %s", "client", "answer", "sent kB", "memory kB", "error")
	for _, c := range clients {
		for _, a := range c.attacks {
			t.Run(c.name+"/"+a.name, func(t *testing.T) {
				h := serve(t, a.answer)
				var err error
				most := peak(func() { err = c.ask(t.Context(), h.url) })
				t.Logf("%-16s %-22s %10d %10d  %v", c.name, a.name, h.sent.Load()>>10, most>>10, err)
				switch {
				case a.words == "" && err == nil && most <= mostAboveRest:
				case err == nil || !strings.Contains(err.Error(), a.words):
					t.Errorf("the error is %v; it should say %q", err, a.words)
				case most > mostAboveRest:
					t.Errorf("it took %d bytes of memory; at most %d are allowed", most, mostAboveRest)
				case h.sent.Load() > 4*mostAboveRest+mostUnread:
					t.Errorf("the server was rid of %d bytes", h.sent.Load())
				}
			})
		}
	}
}

// peak runs f and returns how much more memory the heap's objects took meanwhile than
// before, in bytes: those that nobody holds any more too.
func peak(f func()) uint64 {
	runtime.GC()
	rest := objects()
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				most.Store(max(most.Load(), objects()))
				runtime.Gosched()
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return max(most.Load(), rest) - rest
}

func objects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

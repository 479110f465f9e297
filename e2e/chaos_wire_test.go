package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/internal/livewire"
	"voicegw/internal/openaiwire"
	"voicegw/transport"
)

// wiretap is between the gateway and the provider and records the tool calls on each connection. Calls over OpenAI Live
// are not on its wire: the text model makes them, and watchedConn records them.
type wiretap struct {
	url   string
	close func()

	mu    sync.Mutex // guards the following field, and all lines
	lines []*line
}

// line is a connection to the provider.
type line struct {
	provider string
	ended    time.Time // zero while it lives
	calls    map[string]*wireCall
	asked    map[asking]bool
	past     map[string]bool // calls of a replayed history, until their outputs follow
}

// asking is a wish that the provider called, with an id if it sent one.
type asking struct{ tool, ref, id string }

// wireCall is a call on the wire. Calls without an id are counted together for each tool (Gemini, by name and order) or
// as a whole (OpenAI).
type wireCall struct {
	id, tool  string
	items     map[string]bool // OpenAI's items
	maybe     map[string]bool // items with complete arguments only
	announced []time.Time
	answered  []time.Time
	cancelled time.Time // zero if it was not cancelled
}

func newWiretap(t testing.TB, provider http.Handler) *wiretap {
	t.Helper()
	upstream := httptest.NewServer(provider)
	w := &wiretap{}
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	onward := &http.Transport{}
	texts := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: onward, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			texts.ServeHTTP(rw, r) // the text model behind OpenAI Live
			return
		}
		w.relay(rw, r, upstream.URL)
	}))
	w.url = srv.URL
	w.close = func() {
		srv.CloseClientConnections()
		srv.Close()
		onward.CloseIdleConnections()
		upstream.CloseClientConnections()
		upstream.Close()
	}
	t.Cleanup(w.close) // may be called again
	return w
}

// relay dials first, so that the gateway sees a refusal of the provider.
func (w *wiretap) relay(rw http.ResponseWriter, r *http.Request, upstream string) {
	up, resp, err := websocket.Dial(r.Context(), upstream+r.URL.RequestURI(), &websocket.DialOptions{HTTPHeader: upgradeFree(r.Header)})
	if err != nil {
		status := http.StatusBadGateway
		if resp != nil && resp.StatusCode >= 300 {
			status = resp.StatusCode
		}
		rw.WriteHeader(status)
		return
	}
	defer up.CloseNow()
	down, err := websocket.Accept(rw, r, &websocket.AcceptOptions{Subprotocols: []string{up.Subprotocol()}})
	if err != nil {
		return
	}
	defer down.CloseNow()
	l := w.open(providerAt(r.URL.Path))
	var both sync.WaitGroup
	both.Go(func() { w.carry(l, down, up, l.fromGateway) })
	both.Go(func() { w.carry(l, up, down, l.fromProvider) })
	both.Wait()
}

// open begins the record of a connection.
func (w *wiretap) open(provider string) *line {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &line{provider: provider, calls: map[string]*wireCall{}, asked: map[asking]bool{}}
	w.lines = append(w.lines, l)
	return l
}

func providerAt(path string) string {
	switch {
	case strings.Contains(path, "realtime"):
		return "openai"
	case strings.HasSuffix(path, livewire.Path):
		return "live"
	}
	return "gemini"
}

// times returns the number of copies of a frame to forward: the clock of OpenAI Live advances with the silence that the
// gateway sends in real time, and the other models are faster than that.
func (l *line) times(frame []byte) int {
	if l.provider != "live" {
		return 1
	}
	_, sound, ok := openaiwire.ReadAudio(frame, livewire.AudioAppend, "audio")
	if !ok || len(bytes.Trim(sound, "A=")) > 0 {
		return 1
	}
	return max(int(*chaosSpeed), 1)
}

// carry copies frames until one side ends, and forwards the close code.
func (w *wiretap) carry(l *line, from, to *websocket.Conn, note func([]byte, time.Time)) {
	from.SetReadLimit(64 << 20)
	for {
		typ, data, err := from.Read(context.Background())
		if err != nil {
			w.end(l)
			if code := websocket.CloseStatus(err); code > 0 {
				to.Close(code, "relayed")
			}
			to.CloseNow()
			return
		}
		if aboutCalls(data) {
			w.mu.Lock()
			note(data, time.Now())
			w.mu.Unlock()
		}
		for range l.times(data) {
			if to.Write(context.Background(), typ, data) != nil {
				w.end(l)
				from.CloseNow()
				return
			}
		}
	}
}

// calls counts the calls over a wire.
func (w *wiretap) calls(provider string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.lines {
		if l.provider == provider {
			n += len(l.calls)
		}
	}
	return n
}

func (w *wiretap) end(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.ended.IsZero() {
		l.ended = time.Now()
	}
}

// aboutCalls selects frames to parse.
func aboutCalls(data []byte) bool {
	return bytes.Contains(data, []byte(`"toolCall`)) || bytes.Contains(data, []byte(`"toolResponse"`)) || bytes.Contains(data, []byte(`function_call`))
}

// said is a message about calls on either wire.
type said struct {
	// Gemini's.
	ToolCall struct {
		FunctionCalls []struct {
			ID, Name string
			Args     struct{ Ref any }
		}
	}
	ToolCallCancellation struct{ IDs []string }
	ToolResponse         struct {
		FunctionResponses []struct{ ID, Name string }
	}
	// OpenAI's.
	Type     string
	Item     openAIItem
	CallID   string `json:"call_id"`
	ItemID   string `json:"item_id"`
	Name     string
	Response struct {
		Status string
		Output []openAIItem
	}
}

type openAIItem struct {
	ID, Type, Status, Name, Arguments string
	CallID                            string `json:"call_id"`
}

// fromProvider is called with the lock held, before the frame is forwarded. Frames that are not JSON are ignored.
func (l *line) fromProvider(data []byte, now time.Time) {
	var s said
	if json.Unmarshal(data, &s) != nil {
		return
	}
	for _, c := range s.ToolCall.FunctionCalls {
		ref, _ := c.Args.Ref.(string)
		l.announce(c.ID, c.Name, "", ref, now)
	}
	for _, id := range s.ToolCallCancellation.IDs {
		if c := l.calls[id]; c != nil && c.cancelled.IsZero() {
			c.cancelled = now
		}
	}
	switch s.Type {
	case "response.function_call_arguments.done":
		// If the other messages are lost, the gateway may take the call from this one.
		l.call(s.CallID, s.Name).maybe[s.ItemID] = true
	case "response.output_item.done":
		l.item(s.Item, now)
	case "response.done":
		if s.Response.Status == "completed" {
			for _, it := range s.Response.Output {
				l.item(it, now)
			}
		}
	}
}

func (l *line) item(it openAIItem, now time.Time) {
	if it.Type != "function_call" || it.Status != "completed" {
		return
	}
	var args struct{ Ref any }
	// Arguments that are not JSON have no name.
	_ = json.Unmarshal([]byte(it.Arguments), &args)
	ref, _ := args.Ref.(string)
	l.announce(it.CallID, it.Name, it.ID, ref, now)
}

// announce records a call; an OpenAI item is recorded once.
func (l *line) announce(id, tool, item, ref string, now time.Time) {
	c := l.call(id, tool)
	if item != "" && c.items[item] {
		return
	}
	c.items[item] = true
	delete(c.maybe, item)
	l.asked[asking{tool, ref, id}] = true
	c.announced = append(c.announced, now)
}

func (l *line) call(id, tool string) *wireCall {
	key := id
	if id == "" && l.provider == "gemini" {
		key = "without an id: " + tool
	}
	return l.named(key, id, tool)
}

func (l *line) named(key, id, tool string) *wireCall {
	if l.calls[key] == nil {
		l.calls[key] = &wireCall{id: id, tool: tool, items: map[string]bool{}, maybe: map[string]bool{}}
	}
	return l.calls[key]
}

// hear records a call over OpenAI Live by the gateway's name of it.
func (l *line) hear(name, id, tool, ref string, now time.Time) {
	c := l.named(name, id, tool)
	c.announced = append(c.announced, now)
	l.asked[asking{tool, ref, id}] = true
}

// fromGateway is called with the lock held.
func (l *line) fromGateway(data []byte, now time.Time) {
	var s said
	if json.Unmarshal(data, &s) != nil {
		return
	}
	for _, r := range s.ToolResponse.FunctionResponses {
		c := l.call(r.ID, r.Name)
		c.answered = append(c.answered, now)
	}
	switch {
	case s.Item.Type == "function_call":
		if l.past == nil {
			l.past = map[string]bool{}
		}
		l.past[s.Item.CallID] = true // the provider did not call it on this line
	case s.Item.Type == "function_call_output" && l.past[s.Item.CallID]:
		delete(l.past, s.Item.CallID)
	case s.Item.Type == "function_call_output":
		c := l.call(s.Item.CallID, "")
		c.answered = append(c.answered, now)
	}
}

// gatewaySide records when the gateway read calls and began to answer them: messages that cross on the wire are no
// fault.
type gatewaySide struct {
	mu        sync.Mutex // guards the following fields
	read      int        // number of calls read
	cancelled map[string]time.Time
	answering map[string][]time.Time // when the sending of an answer began
}

// watched is a transport with observers: a gatewaySide and a linkSide.
type watched struct {
	transport.Transport
	side  *gatewaySide
	links *linkSide
	node  *chaosNode
}

func (w watched) Connect(ctx context.Context, setup transport.Setup) (transport.Conn, error) {
	visit := setup.Voice
	setup.Voice = ""
	if n := w.links.number(visit); n > 1 {
		select {
		case <-time.After(slowDial(visit, n)):
		case <-ctx.Done():
		}
	}
	c, err := w.Transport.Connect(ctx, setup)
	link, gen := w.links.connected(visit, w.node, c, err)
	if err != nil {
		return nil, err
	}
	made := &watchedConn{Conn: c, side: w.side, ids: map[string]string{}, links: w.links, visit: visit, link: link, gen: gen, node: w.node}
	if w.Name() == "live" {
		made.calls = w.node.ch.tap.open("live")
		link.carried = setup.Carried != nil
	}
	return made, nil
}

type watchedConn struct {
	transport.Conn
	side *gatewaySide
	ids  map[string]string // the provider's by ours; guarded by side.mu

	links *linkSide
	visit string
	link  *chaosLink
	gen   int

	node  *chaosNode
	calls *line // for a connection to OpenAI Live
}

func (c *watchedConn) Close() error {
	c.links.close(c.visit, c.link)
	if c.calls != nil {
		c.node.ch.tap.end(c.calls)
	}
	return c.Conn.Close()
}

// CarryOver implements transport.Carrier.
func (c *watchedConn) CarryOver() transport.Carried { return transport.CarryOver(c.Conn) }

// record records a call over OpenAI Live, or its answer. A dead gateway makes neither.
func (c *watchedConn) record(do func(now time.Time)) {
	if c.calls != nil {
		c.node.alive(func() {
			c.node.ch.tap.mu.Lock()
			defer c.node.ch.tap.mu.Unlock()
			do(time.Now())
		})
	}
}

func (c *watchedConn) Recv() (transport.Event, error) {
	ev, err := c.Conn.Recv()
	c.links.event(c.visit, c.gen, c.link, ev, err)
	if err != nil && c.calls != nil {
		c.node.ch.tap.end(c.calls)
	}
	switch ev := ev.(type) {
	case transport.ToolCall:
		var args struct{ Ref any }
		_ = json.Unmarshal(ev.Args, &args) // arguments that are not JSON have no name
		ref, _ := args.Ref.(string)
		c.record(func(now time.Time) { c.calls.hear(ev.Call, ev.ID, ev.Name, ref, now) })
		c.side.mu.Lock()
		defer c.side.mu.Unlock()
		c.side.read++
		c.ids[ev.Call] = ev.ID
	case transport.ToolCancelled:
		c.side.mu.Lock()
		defer c.side.mu.Unlock()
		for _, call := range ev.Calls {
			if id := c.ids[call]; id != "" && c.side.cancelled[id].IsZero() {
				c.side.cancelled[id] = time.Now()
			}
		}
	}
	return ev, err
}

func (c *watchedConn) Send(ctx context.Context, cmd transport.Command) error {
	if r, ok := cmd.(transport.ToolResult); ok {
		c.side.mu.Lock()
		if id := c.ids[r.Call]; id != "" {
			c.side.answering[id] = append(c.side.answering[id], time.Now())
		}
		c.side.mu.Unlock()
		if err := c.Conn.Send(ctx, cmd); err != nil {
			return err
		}
		c.record(func(now time.Time) {
			call := c.calls.named(r.Call, "", "")
			call.answered = append(call.answered, now)
		})
		return nil
	}
	return c.Conn.Send(ctx, cmd)
}

// tooLate counts the answers to a call that began after its cancellation had been read.
func (g *gatewaySide) tooLate(c *wireCall) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	read := g.cancelled[c.id]
	if read.IsZero() {
		return 0
	}
	crossed := 0
	for _, at := range g.answering[c.id] {
		if !at.After(read) {
			crossed++
		}
	}
	return max(len(c.answered)-crossed, 0)
}

// TestWiretapReadsArguments: the gateway may take a call from its arguments alone, so the wiretap records a call for
// them.
func TestWiretapReadsArguments(t *testing.T) {
	for _, frame := range []string{
		`{"type":"response.function_call_arguments.done","call_id":"call_1","item_id":"item_1","name":"note"}`,
		`{"type":"response.output_item.done","item":{"id":"item_1","type":"function_call","status":"completed","name":"note","call_id":"call_1"}}`,
		`{"type":"response.done","response":{"status":"completed","output":[{"id":"item_1","type":"function_call","status":"completed","call_id":"call_1"}]}}`,
		`{"toolCall":{"functionCalls":[{"id":"call_1","name":"note"}]}}`,
	} {
		l := &line{provider: "openai", calls: map[string]*wireCall{}, asked: map[asking]bool{}}
		if aboutCalls([]byte(frame)) {
			l.fromProvider([]byte(frame), time.Now())
		}
		if c := l.calls["call_1"]; c == nil || len(c.announced)+len(c.maybe) != 1 {
			t.Errorf("not heard: %s", frame)
		}
	}
}

// TestWiretapSpeedsUpLive: the wiretap repeats only silence.
func TestWiretapSpeedsUpLive(t *testing.T) {
	quiet := livewire.AppendAudio(nil, make([]byte, 4800))
	for _, tc := range []struct {
		provider, frame string
		want            int
	}{
		{"live", string(quiet), int(*chaosSpeed)},
		{"live", string(livewire.AppendAudio(nil, []byte{0, 0, 1, 0})), 1},
		{"live", `{"type":"session.close"}`, 1},
		{"openai", string(quiet), 1},
	} {
		if got := (&line{provider: tc.provider}).times([]byte(tc.frame)); got != tc.want {
			t.Errorf("%.60s of %s is forwarded %d times, want %d", tc.frame, tc.provider, got, tc.want)
		}
	}
}

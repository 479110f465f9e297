package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"voicegw/audio"
	phone "voicegw/gateway/phone"
	"voicegw/internal/testutil"
	"voicegw/internal/ws"
	"voicegw/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token  = "auth-token-for-tests"
	public = "https://voice.example.com/gw"
)

// fakeGateway is the gateway of calls, on an in-memory network.
type fakeGateway struct {
	t       *testing.T
	twiml   string
	serve   func(c *ws.Conn, start *phone.Message) // handles a stream after its start
	carrier *Carrier
	rest    *http.Client   // reaches the carrier
	open    sync.WaitGroup // requests and streams

	mu    sync.Mutex
	notes []string
}

const streamTwiML = `<?xml version="1.0"?><Response><Say>We record this call.</Say><Connect><Stream url="wss://voice.example.com/gw/v1/phone/twilio">` +
	`<Parameter name="ticket" value="t&amp;1"/></Stream></Connect><Say>Sorry</Say><Hangup/></Response>`

func (g *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.open.Add(1)
	defer g.open.Done()
	sign := r.Header.Get("X-Twilio-Signature")
	switch r.URL.Path {
	case VoicePath:
		if err := r.ParseForm(); err != nil || !phone.Signed(sign, token, public+r.URL.RequestURI(), r.PostForm) {
			http.Error(w, "a forged webhook", http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, g.twiml)
	case TwilioPath:
		if !phone.Signed(sign, token, "wss://voice.example.com/gw"+r.URL.RequestURI(), nil) {
			http.Error(w, "a forged stream", http.StatusForbidden)
			return
		}
		c, err := ws.Accept(w, r, nil, ws.Options{})
		if err != nil {
			g.t.Error(err)
			return
		}
		defer func() { _ = c.CloseNow() }()
		first, start := g.next(c), g.next(c)
		if start == nil {
			return // the call is over
		}
		if first.Event != phone.EventConnected {
			g.t.Errorf("the stream begins with %+v", first)
		}
		g.serve(c, start)
	default:
		g.t.Errorf("asked for %s", r.URL)
	}
}

// next reads a message; nil at the end.
func (g *fakeGateway) next(c *ws.Conn) *phone.Message {
	_, data, err := c.Read()
	if err != nil {
		return nil
	}
	m, err := phone.Parse(data)
	if err != nil {
		g.t.Error(err)
		return nil
	}
	return m
}

func (g *fakeGateway) send(c *ws.Conn, m *phone.Message) {
	data, err := phone.Encode(m)
	if err == nil {
		err = c.Write(websocket.MessageText, data)
	}
	if err != nil {
		g.t.Error(err)
	}
}

// speak sends audio in frames of 20 ms, and a mark.
func (g *fakeGateway) speak(c *ws.Conn, stream string, d time.Duration, mark string) {
	payload := base64.StdEncoding.EncodeToString(make([]byte, phone.FrameSamples))
	for range d / (phone.FrameMS * time.Millisecond) {
		g.send(c, &phone.Message{Event: phone.EventMedia, StreamSID: stream, Media: &phone.Media{Payload: payload}})
	}
	g.send(c, &phone.Message{Event: phone.EventMark, StreamSID: stream, Mark: &phone.Mark{Name: mark}})
}

func (g *fakeGateway) note(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notes = append(g.notes, text)
}

func (g *fakeGateway) noted(t *testing.T, parts ...string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	all := strings.Join(g.notes, "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("the account has no %q:\n%s", part, all)
		}
	}
}

// within runs a test with a gateway and a carrier in a synctest bubble.
func (g *fakeGateway) within(t *testing.T, test func(t *testing.T, g *fakeGateway)) {
	synctest.Test(t, func(t *testing.T) {
		g.t = t
		client, stop := serve(t, g)
		defer stop()
		g.carrier = NewCarrier(CarrierOptions{Account: "AC1", Token: token, Public: public, To: "+15550100",
			Gateway: "http://gateway", Client: client, Note: g.note})
		rest, stopREST := serve(t, g.carrier)
		defer stopREST()
		g.rest = rest
		test(t, g)
		g.open.Wait()
	})
}

// serve starts an HTTP server on an in-memory network, and returns a client.
func serve(t *testing.T, h http.Handler) (client *http.Client, stop func()) {
	l := testutil.ListenPipe()
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	tr := &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}
	return &http.Client{Transport: tr}, func() {
		tr.CloseIdleConnections()
		_ = srv.Close()
		<-done
	}
}

// recorder collects the frames of a connection with their times.
type recorder struct {
	began time.Time
	done  sync.WaitGroup

	mu    sync.Mutex
	lines []string
	sound time.Duration // since the last line
	err   error
}

func listen(c interface {
	Read() (protocol.Frame, error)
}) *recorder {
	e := &recorder{began: time.Now()}
	e.done.Go(func() {
		for {
			f, err := c.Read()
			e.mu.Lock()
			switch {
			case err != nil:
				e.err = err
				e.mu.Unlock()
				return
			case f.Audio:
				e.sound += audio.Duration(phoneRate, len(f.Data))
			default:
				e.hear(f.Data)
			}
			e.mu.Unlock()
		}
	})
	return e
}

func (e *recorder) hear(data []byte) {
	if e.sound > 0 {
		e.lines = append(e.lines, fmt.Sprint("sound of ", e.sound))
		e.sound = 0
	}
	m, err := protocol.ParseServer(data)
	if err != nil {
		e.lines = append(e.lines, err.Error())
		return
	}
	line := fmt.Sprint(time.Since(e.began), " ", protocol.HeaderOf(m).Type)
	switch m := m.(type) {
	case *protocol.AudioEnd:
		line += fmt.Sprintf(" %s %d", m.ItemID, m.AudioMS)
	case *protocol.AudioFlush:
		line += " " + m.ItemID
	case *protocol.TurnEnded:
		line += fmt.Sprintf(" %d %s", m.Turn, m.Status)
	case *protocol.SessionEnded:
		line += " " + m.Reason
	}
	e.lines = append(e.lines, line)
}

func (e *recorder) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, "\n")
}

// call begins a call.
func (g *fakeGateway) call(ctx context.Context, t *testing.T) (*Phone, *recorder) {
	t.Helper()
	p, err := g.carrier.Call(ctx, "+15557654321")
	if err != nil {
		t.Fatal(err)
	}
	e := listen(p)
	say(t, p, &protocol.Start{InputRate: phoneRate, OutputRate: phoneRate})
	return p, e
}

func say(t *testing.T, c interface{ WriteText([]byte) error }, m protocol.ClientMessage) {
	t.Helper()
	data, err := protocol.EncodeClient(m)
	if err == nil {
		err = c.WriteText(data)
	}
	if err != nil {
		t.Error(err)
	}
}

// keepSilent sends silence for d, a frame each 20 ms.
func keepSilent(t *testing.T, p *Phone, d time.Duration) {
	t.Helper()
	for range d / (20 * time.Millisecond) {
		if err := p.WriteAudio(testutil.Silence(phoneRate, 20*time.Millisecond)); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // virtual time: a phone sends on a clock
	}
}

// TestCall: marks return when their audio was played or cleared, keys are sent one by one, and silence ends an answer.
func TestCall(t *testing.T) {
	var got []string
	var began time.Time
	g := &fakeGateway{twiml: streamTwiML}
	g.serve = func(c *ws.Conn, start *phone.Message) {
		s := start.Start
		if start.Event != phone.EventStart || s.CustomParameters["ticket"] != "t&1" || s.StreamSID != start.StreamSID || s.AccountSID != "AC1" ||
			s.MediaFormat.SampleRate != phoneRate {
			g.t.Errorf("started with %+v", s)
		}
		began = time.Now()
		g.speak(c, start.StreamSID, 400*time.Millisecond, "first")
		clear := time.AfterFunc(3*time.Second, func() {
			g.speak(c, start.StreamSID, 600*time.Millisecond, "cleared")
			time.Sleep(210 * time.Millisecond) //nolint:forbidigo // virtual time: into the audio
			g.send(c, &phone.Message{Event: phone.EventClear, StreamSID: start.StreamSID})
		})
		defer clear.Stop()
		media := 0
		for m := g.next(c); m != nil; m = g.next(c) {
			switch m.Event {
			case phone.EventMedia:
				if media++; m.Media.Chunk != fmt.Sprint(media) || m.Media.Timestamp != fmt.Sprint((media-1)*phone.FrameMS) {
					g.t.Fatalf("frame %d is %+v", media, m.Media)
				}
			case phone.EventMark:
				got = append(got, fmt.Sprint(time.Since(began), " mark ", m.Mark.Name))
			case phone.EventDTMF:
				got = append(got, fmt.Sprint(time.Since(began), " key ", m.DTMF.Digit))
			default:
				got = append(got, fmt.Sprint(time.Since(began), " ", m.Event))
			}
		}
	}
	g.within(t, func(t *testing.T, g *fakeGateway) {
		p, e := g.call(t.Context(), t)
		keepSilent(t, p, 4*time.Second)
		say(t, p, &protocol.InputText{Text: "1#"})
		keepSilent(t, p, time.Second)
		say(t, p, &protocol.Playback{ItemID: "answer_1", PlayedMS: 400, Done: true})
		say(t, p, &protocol.End{})
		e.done.Wait()
		p.Abort()
		want := `0s session.started
0s turn.started
0s audio.start
sound of 400ms
1.9s audio.end answer_1 400
1.9s turn.ended 1 completed
3s turn.started
3s audio.start
sound of 600ms
3.21s audio.flush answer_2
3.21s turn.ended 2 interrupted
5s session.ended client_ended`
		if text := e.text(); text != want {
			t.Errorf("heard\n%s\nwant\n%s", text, want)
		}
		want = "400ms mark first\n3.22s mark cleared\n4s key 1\n4.2s key #\n5s stop"
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("the gateway got\n%s\nwant\n%s", text, want)
		}
		g.noted(t, "inbound call from +15557654321 to +15550100", "the carrier says: We record this call.", "the caller presses 1#", "the caller hangs up")
	})
}

// TestGatewayEnds: the gateway ends a call over the REST API, or closes the stream, and the carrier continues with its TwiML.
func TestGatewayEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		form        url.Values
		reason, say string
	}{
		"hang up":      {url.Values{"Status": {"completed"}}, "tool_ended", "the gateway hangs up"},
		"transfer":     {url.Values{"Twiml": {`<Response><Dial>+15550000002</Dial></Response>`}}, "tool_ended", "transfers the call to +15550000002"},
		"close":        {nil, "stream_closed", "the carrier says: Sorry"},
		"wrong status": {url.Values{"Status": {"ringing"}}, "stream_closed", "the carrier says: Sorry"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeGateway{twiml: streamTwiML}
			status := 0
			g.serve = func(c *ws.Conn, start *phone.Message) {
				g.speak(c, start.StreamSID, 100*time.Millisecond, "begun")
				time.Sleep(time.Millisecond) //nolint:forbidigo // virtual time: the carrier gets it
				if tc.form != nil {
					status = g.post("/2010-04-01/Accounts/AC1/Calls/"+start.Start.CallSID+".json", "AC1", token, tc.form)
				}
				if tc.reason == "stream_closed" {
					_ = c.Close(websocket.StatusNormalClosure, "")
					return
				}
				if again := g.post("/2010-04-01/Accounts/AC1/Calls/"+start.Start.CallSID+".json", "AC1", token, tc.form); again != http.StatusNotFound {
					g.t.Errorf("ending the call again: %d", again)
				}
				for g.next(c) != nil { // until the stream closes
				}
			}
			g.within(t, func(t *testing.T, g *fakeGateway) {
				p, e := g.call(t.Context(), t)
				e.done.Wait()
				p.Abort()
				ends := "session.ended " + tc.reason
				if tc.reason == "tool_ended" { // this ends the answer, too
					ends = "1ms turn.ended 1 completed\n1ms " + ends
				}
				if text := e.text(); !strings.HasSuffix(text, ends) || strings.Contains(text, "turn.ended") != (tc.reason == "tool_ended") {
					t.Errorf("heard\n%s", text)
				}
				g.noted(t, tc.say)
			})
			if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[tc.reason == "tool_ended"]; tc.form != nil && status != want {
				t.Errorf("answered %d", status)
			}
		})
	}
}

// post sends a request to the REST API and returns its status.
func (g *fakeGateway) post(path, user, password string, form url.Values) int {
	r, err := http.NewRequest(http.MethodPost, "http://carrier"+path, strings.NewReader(form.Encode()))
	if err != nil {
		g.t.Error(err)
		return 0
	}
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := g.rest.Do(r)
	if err != nil {
		g.t.Error(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestOutboundCall: the gateway orders a call over the REST API, and the carrier requests its webhook.
func TestOutboundCall(t *testing.T) {
	g := &fakeGateway{twiml: streamTwiML}
	g.serve = func(c *ws.Conn, _ *phone.Message) { _ = c.Close(websocket.StatusNormalClosure, "") }
	g.within(t, func(t *testing.T, g *fakeGateway) {
		const calls = "/2010-04-01/Accounts/AC1/Calls.json"
		order := url.Values{"From": {"+15550100"}, "To": {"+15557654321"}, "Url": {public + VoicePath + "?call=sealed"}}
		for name, tc := range map[string]struct {
			path, user, password string
			form                 url.Values
			status               int
		}{
			"wrong password":   {calls, "AC1", "guess", order, http.StatusUnauthorized},
			"wrong user":       {calls, "AC2", token, order, http.StatusUnauthorized},
			"another account":  {"/2010-04-01/Accounts/AC2/Calls.json", "AC1", token, order, http.StatusNotFound},
			"no number":        {calls, "AC1", token, url.Values{"From": {"+1"}, "Url": {"x"}}, http.StatusBadRequest},
			"no document":      {calls, "AC1", token, url.Values{"From": {"+1"}, "To": {"+2"}}, http.StatusBadRequest},
			"an unknown call":  {"/2010-04-01/Accounts/AC1/Calls/CA1.json", "AC1", token, order, http.StatusNotFound},
			"another resource": {"/2010-04-01/Accounts/AC1/Messages.json", "AC1", token, order, http.StatusNotFound},
		} {
			if got := g.post(tc.path, tc.user, tc.password, tc.form); got != tc.status {
				t.Errorf("%s: %d", name, got)
			}
		}
		if got := g.post(calls, "AC1", token, order); got != http.StatusCreated {
			t.Fatalf("ordered: %d", got)
		}
		if got := g.post(calls, "AC1", token, order); got != http.StatusTooManyRequests {
			t.Errorf("ordered a second: %d", got)
		}
		p, err := g.carrier.Await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p.Abort()
		g.noted(t, "the gateway orders a call to +15557654321", "outbound-api call from +15550100 to +15557654321")
	})
}

// TestNoStream: without a stream, the error describes the carrier's action or the problem.
func TestNoStream(t *testing.T) {
	stream := func(url string) string {
		return `<Response><Connect><Stream url="` + url + `"/></Connect></Response>`
	}
	for name, tc := range map[string]struct{ twiml, token, want string }{
		"declined":          {`<Response><Say>Sorry</Say><Hangup/></Response>`, token, "declined the call: <Hangup>"},
		"transfer":          {`<Response><Dial><Number>+15550000009</Number></Dial></Response>`, token, "transferred to +15550000009"},
		"no document":       {`hello`, token, "not TwiML"},
		"empty":             {`<Response/>`, token, "no <Stream>"},
		"no address":        {`<Response><Connect/></Response>`, token, "no <Stream> with a url"},
		"a query":           {stream("wss://voice.example.com/gw/v1/phone/twilio?x=1"), token, "31922"},
		"a forged webhook":  {streamTwiML, "other", "403 Forbidden: a forged webhook"},
		"a forged stream":   {stream("wss://voice.example.com/gw/v1/phone/twilio#x"), token, "a forged stream"},
		"an odd address":    {stream("%zz"), token, "invalid URL escape"},
		"another parameter": {streamTwiML, token, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeGateway{twiml: tc.twiml, serve: func(*ws.Conn, *phone.Message) {}}
			g.within(t, func(t *testing.T, g *fakeGateway) {
				g.carrier.o.Token = tc.token
				p, err := g.carrier.Call(t.Context(), "+1")
				if err == nil {
					p.Abort()
				}
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
			})
		})
	}
}

// TestGatewayErrors: an invalid message ends the call with an error that quotes it.
func TestGatewayErrors(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no JSON":        {`hello`, "sent hello"},
		"another stream": {`{"event":"clear","streamSid":"MZ1"}`, "streamSid"},
		"no base64":      {`{"event":"media","streamSid":"SID","media":{"payload":"*"}}`, "base64"},
		"another event":  {`{"event":"hello","streamSid":"SID"}`, "not a message for a carrier"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeGateway{twiml: streamTwiML}
			g.serve = func(c *ws.Conn, start *phone.Message) {
				if err := c.Write(websocket.MessageText, []byte(strings.Replace(tc.text, "SID", start.StreamSID, 1))); err != nil {
					g.t.Error(err)
				}
				g.next(c)
			}
			g.within(t, func(t *testing.T, g *fakeGateway) {
				p, e := g.call(t.Context(), t)
				e.done.Wait()
				p.Abort()
				if e.err == nil || !strings.Contains(e.err.Error(), tc.want) {
					t.Errorf("ended with %v", e.err)
				}
			})
		})
	}
}

func FuzzTwiML(f *testing.F) {
	f.Add(streamTwiML)
	f.Add(`<Response><Dial>+1</Dial></Response>`)
	c := NewCarrier(CarrierOptions{Gateway: "http://127.0.0.1:1", Public: public})
	f.Fuzz(func(t *testing.T, document string) {
		stream, _, err := c.follow(document)
		if (stream == nil) != (err != nil) {
			t.Errorf("%v, %v", stream, err)
		}
		if err == nil {
			_, _ = c.reachable(stream.URL)
		}
	})
}

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/gateway/phone"
	"voicegw/internal/conversation"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/internal/ws"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/session/handoff"
	"voicegw/store"
)

const phoneToken = "e2e-twilio-token"

func phoneSettings() *phone.Settings {
	return &phone.Settings{
		PublicURL: "https://localhost", Sorry: "Sorry.",
		Numbers:   map[string]string{"+15550100": "", "+15550101": ""},
		Transfers: map[string]string{"sales": "+15550123"}, KeyApproval: true,
		Outbound: phone.Outbound{From: "+15550100", Carrier: phone.Twilio, Prefixes: []string{"+1555"}},
		Accounts: map[string]phone.Account{phone.Twilio: {ID: "AC1", Secret: phoneToken, API: "https://carrier.example"}},
	}
}

// phoneHandoffs makes tickets in memory, because the store does not support virtual time.
type phoneHandoffs struct {
	mu      sync.Mutex
	invited []handoff.Invitation
	used    map[string]bool
}

func (d *phoneHandoffs) Invite(_ context.Context, in handoff.Invitation) (registry.VoiceOffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.invited = append(d.invited, in)
	return registry.VoiceOffer{Ticket: fmt.Sprint("ticket-", len(d.invited))}, nil
}

func (d *phoneHandoffs) Conversation(_ context.Context, id string) (*conversation.Conversation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, in := range d.invited {
		if in.ConversationID == id {
			return conversation.New(id, in.User.String(), in.Agent, time.Now()), nil
		}
	}
	return nil, store.ErrUnknown
}

func (d *phoneHandoffs) Redeem(_ context.Context, secret, _ string) (handoff.Ticket, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(secret, "ticket-"))
	switch {
	case err != nil || n < 1 || n > len(d.invited):
		return handoff.Ticket{}, store.ErrUnknown
	case d.used[secret]:
		return handoff.Ticket{}, store.ErrUsed
	case d.used == nil:
		d.used = map[string]bool{}
	}
	d.used[secret] = true
	in := d.invited[n-1]
	return handoff.Ticket{SessionID: "voice-" + secret, User: in.User, Vouched: in.Vouched, Agent: in.Agent, ConversationID: in.ConversationID,
		PendingRequest: in.PendingRequest}, nil
}

func (d *phoneHandoffs) Enter(context.Context, string, user.User) (string, error) { return "", nil }
func (d *phoneHandoffs) Adopt(context.Context, string, uint64, string, user.User) (handoff.Adopted, error) {
	return handoff.Adopted{}, nil
}
func (d *phoneHandoffs) Save(context.Context, handoff.Part) error     { return nil }
func (d *phoneHandoffs) HandBack(context.Context, handoff.Part) error { return nil }
func (d *phoneHandoffs) Decided(context.Context, store.Confirmation, json.RawMessage) error {
	return nil
}

// phoneTools returns the tools pay, which needs approval, goodbye and transfer {to}.
func phoneTools(t *testing.T) (tools *registry.Registry, paid *atomic.Int32) {
	paid = &atomic.Int32{}
	intents := func(of func(to string) registry.Intent) registry.Handler {
		return registry.Bind(func(_ context.Context, c registry.Call[anyArgs, struct{}]) (registry.Result, error) {
			var args struct{ To string }
			err := json.Unmarshal(c.Args.RawMessage, &args)
			return registry.Result{Data: "ok", Intents: []registry.Intent{of(args.To)}}, err
		})
	}
	utility := func(*spec.Spec) {}
	var err error
	tools, err = registry.Load(registrytest.File(t,
		testTool(t, "pay", ``, ``, func(e *spec.Spec) {
			e.Category, e.SideEffects, e.Idempotent, e.RequiresConfirmation, e.Preview = spec.CategoryAction, spec.SideEffectsWrites, false, true, "Pay"
		}),
		testTool(t, "goodbye", ``, ``, utility), testTool(t, "transfer", `"to":{"type":"string"}`, `"to"`, utility),
	), registry.Options{Handlers: map[string]registry.Handler{
		"pay": registry.Bind(func(context.Context, registry.Call[anyArgs, struct{}]) (registry.Result, error) {
			paid.Add(1)
			return registry.Result{Data: "paid"}, nil
		}),
		"goodbye":  intents(func(string) registry.Intent { return registry.EndVoiceSession(registry.EndAfterFarewellSpoken) }),
		"transfer": intents(registry.TransferCall),
	}})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	return tools, paid
}

// rest is a carrier's REST API.
type rest struct {
	mu    sync.Mutex
	asked []string
}

func (r *rest) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	user, key, _ := req.BasicAuth()
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprint(req.Method, " ", req.URL.Path, " ", string(body))
	if user != "AC1" || key != phoneToken {
		text += " without credentials"
	}
	r.asked = append(r.asked, text)
	return &http.Response{StatusCode: 201, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(`{"sid":"CA77"}`))}, nil
}

func (r *rest) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// do makes a request. The connection stays open, because closing the in-memory network drops unread data.
func (st *stack) do(t *testing.T, req *http.Request) (status int, body string) {
	t.Helper()
	over := st.client.Transport.(*http.Transport).Clone()
	over.DisableKeepAlives = false
	defer over.CloseIdleConnections()
	resp, err := (&http.Client{Transport: over}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// webhook posts a call to the gateway, signed with token.
func (st *stack) webhook(t *testing.T, query, token string, form url.Values) (status int, body string) {
	t.Helper()
	at := phone.VoicePath(phone.Twilio) + query
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, st.url+at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Twilio-Signature", phone.Sign(token, "https://localhost"+at, form))
	return st.do(t, req)
}

func incoming(id string) url.Values {
	return url.Values{"AccountSid": {"AC1"}, "CallSid": {id}, "From": {"+15559999"}, "To": {"+15550100"}}
}

// twiml is the part of TwiML that the tests read.
type twiml struct {
	Say     []string
	Connect struct {
		Stream struct {
			URL       string `xml:"url,attr"`
			Parameter struct {
				Name  string `xml:"name,attr"`
				Value string `xml:"value,attr"`
			}
		}
	}
	Hangup *struct{}
}

// phoneCall is the carrier's side of a call in a synctest bubble: every 20 ms it sends a frame of the caller and plays one.
type phoneCall struct {
	t    *testing.T
	conn *ws.Conn
	id   string

	mu      sync.Mutex
	speech  []byte // PCM of the caller, not sent yet
	queue   []byte // mu-law, not played yet
	marks   []phoneMark
	played  []byte // mu-law, with silence for gaps
	heard   int    // bytes of played that are from the gateway
	cleared []int  // length of played at each clear
	most    int    // largest length of queue
	mute    bool   // stops sending frames
	noMarks bool
	over    chan struct{}
}

type phoneMark struct {
	name string
	at   int // bytes of queue before the mark
}

func (st *stack) call(t *testing.T, id string) *phoneCall {
	t.Helper()
	status, body := st.webhook(t, "", phoneToken, incoming(id))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return st.answer(t, id, body)
}

// answer opens the stream of the TwiML.
func (st *stack) answer(t *testing.T, id, body string) *phoneCall {
	t.Helper()
	var x twiml
	if err := xml.Unmarshal([]byte(body), &x); err != nil || x.Connect.Stream.URL != "wss://localhost/v1/phone/twilio" {
		t.Fatalf("%v in %s", err, body)
	}
	conn, _, err := ws.Dial(t.Context(), st.url+phone.StreamPath(phone.Twilio), &websocket.DialOptions{HTTPClient: st.client,
		HTTPHeader: http.Header{"X-Twilio-Signature": {phone.Sign(phoneToken, x.Connect.Stream.URL, nil)}}}, ws.Options{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := &phoneCall{t: t, conn: conn, id: id, over: make(chan struct{})}
	var both sync.WaitGroup
	t.Cleanup(func() { conn.CloseNow(); both.Wait() })
	c.send(&phone.Message{Event: phone.EventConnected, Protocol: "Call", Version: "1.0.0"})
	c.send(&phone.Message{Event: phone.EventStart, StreamSID: "MZ" + id, Start: &phone.Start{AccountSID: "AC1", CallSID: id, StreamSID: "MZ" + id,
		CustomParameters: map[string]string{x.Connect.Stream.Parameter.Name: x.Connect.Stream.Parameter.Value},
		MediaFormat:      phone.MediaFormat{Encoding: phone.EncodingULaw, SampleRate: 8000, Channels: 1}}})
	both.Go(c.read)
	both.Go(c.tick)
	return c
}

func (c *phoneCall) send(m *phone.Message) {
	text, err := phone.Encode(m)
	if err == nil {
		err = c.conn.Write(websocket.MessageText, text)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) { // the gateway may end the call first
		c.t.Error(err)
	}
}

func (c *phoneCall) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

func (c *phoneCall) read() {
	defer close(c.over)
	for {
		_, data, err := c.conn.Read()
		if err != nil {
			return
		}
		m, err := phone.Parse(data)
		if err != nil || m.StreamSID != "MZ"+c.id {
			c.t.Errorf("%s: %v", data, err)
			return
		}
		c.take(m)
	}
}

func (c *phoneCall) take(m *phone.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Event {
	case phone.EventMedia:
		frame, err := base64.StdEncoding.DecodeString(m.Media.Payload)
		if err != nil || len(frame) != phone.FrameSamples {
			c.t.Errorf("a frame of %d bytes, %v", len(frame), err)
		}
		c.queue = append(c.queue, frame...)
		c.most = max(c.most, len(c.queue))
	case phone.EventMark:
		c.marks = append(c.marks, phoneMark{m.Mark.Name, len(c.queue)})
	case phone.EventClear:
		c.cleared = append(c.cleared, len(c.played))
		c.queue = nil
		c.back(1 << 30)
	}
}

// back returns the marks up to that byte of queue. The caller must hold mu.
func (c *phoneCall) back(upTo int) {
	for len(c.marks) > 0 && c.marks[0].at <= upTo && !c.noMarks {
		c.send(&phone.Message{Event: phone.EventMark, StreamSID: "MZ" + c.id, Mark: &phone.Mark{Name: c.marks[0].name}})
		c.marks = c.marks[1:]
	}
}

func (c *phoneCall) tick() {
	clock := time.NewTicker(20 * time.Millisecond)
	defer clock.Stop()
	for n := 0; ; n++ {
		select {
		case <-c.over:
			return
		case <-clock.C:
		}
		c.mu.Lock()
		frame := make([]byte, 320)
		c.speech = c.speech[copy(frame, c.speech):]
		if !c.mute {
			c.send(&phone.Message{Event: phone.EventMedia, StreamSID: "MZ" + c.id, Media: &phone.Media{Track: "inbound",
				Chunk: fmt.Sprint(n), Timestamp: fmt.Sprint(n * 20), Payload: base64.StdEncoding.EncodeToString(audio.AppendULaw(nil, frame))}})
		}
		k := min(len(c.queue), phone.FrameSamples)
		c.played = append(append(c.played, c.queue[:k]...), bytes.Repeat([]byte{0xFF}, phone.FrameSamples-k)...)
		c.heard += k
		c.queue = c.queue[k:]
		for i := range c.marks {
			c.marks[i].at -= k
		}
		c.back(0)
		c.mu.Unlock()
	}
}

func (c *phoneCall) say(pcm []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speech = append(c.speech, pcm...)
}

func (c *phoneCall) press(keys string) {
	for _, k := range keys {
		c.send(&phone.Message{Event: phone.EventDTMF, StreamSID: "MZ" + c.id, DTMF: &phone.DTMF{Track: "inbound_track", Digit: string(k)}})
	}
}

func (c *phoneCall) heardBytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// hear waits until the caller has heard that much audio of the gateway.
func (c *phoneCall) hear(length time.Duration) {
	c.t.Helper()
	for range 600 {
		if c.heardBytes() >= int(length/time.Millisecond)*8 {
			return
		}
		elapse(20 * time.Millisecond)
	}
	c.t.Fatal("the caller hears nothing")
}

// settle waits until the caller has heard no audio for that time.
func (c *phoneCall) settle(quiet time.Duration) {
	for last := -1; ; {
		heard := c.heardBytes()
		if heard == last {
			return
		}
		last = heard
		elapse(quiet)
	}
}

func (c *phoneCall) hangUp() {
	c.send(&phone.Message{Event: phone.EventStop, StreamSID: "MZ" + c.id, Stop: &phone.Stop{AccountSID: "AC1", CallSID: c.id}})
}

const phoneScenario = `
name: phone
rules:
  - when: {text: any}
    do:
      - say: You have pressed some keys, and I have understood all of them.
  - when: {utterance: any}
    do:
      - say: >-
          Good evening, and thank you for your call, which I answer in a long sentence, so that there is
          enough of it to compare, to interrupt and to measure, whatever happens on the line.
`

func inCall(t *testing.T, change func(*setting), test func(t *testing.T, provider string, st *stack, r *rest)) {
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rest{}
				tools, _ := phoneTools(t)
				set := setting{timed: true, scenario: phoneScenario, firstAudioMS: 100, speed: 3, phone: phoneSettings(), carrier: r,
					desk: &phoneHandoffs{}, tools: &toolbox{registry: tools}}
				if change != nil {
					change(&set)
				}
				st := newStack(t, provider, set)
				st.tap.mu.Lock()
				st.tap.keep = true
				st.tap.mu.Unlock()
				test(t, provider, st, r)
			})
		})
	}
}

func callerSpeech(length time.Duration) []byte {
	return append(testutil.SpeechLike(8000, length, 5), testutil.Silence(8000, 1500*time.Millisecond)...)
}

// TestPhoneCall: the caller hears the model's audio at the pace of the call, and the session ends when the caller hangs up.
func TestPhoneCall(t *testing.T) {
	inCall(t, nil, func(t *testing.T, _ string, st *stack, r *rest) {
		c := st.call(t, "CA1")
		c.say(callerSpeech(time.Second))
		c.hear(time.Second)
		c.settle(time.Second)
		c.mu.Lock()
		heard, most := audio.AppendFromULaw(nil, c.played), c.most
		c.mu.Unlock()
		if most > 8*240 {
			t.Errorf("the carrier held %d ms", most/8)
		}
		st.tap.mu.Lock()
		said := slices.Clone(st.tap.sound)
		st.tap.mu.Unlock()
		if like := likeness(t, heard, said); like < 0.95 {
			t.Errorf("the likeness of the heard and the model's audio is %.3f (%d of %d ms)", like, len(heard)/16, len(said)/48)
		}
		c.hangUp()
		testutil.WaitUntil(t, "the session has ended", func() bool { return st.manager.Running() == 0 })
		<-c.over
		if asked := r.list(); len(asked) > 0 {
			t.Errorf("the carrier was asked for %q", asked)
		}
	})
}

// TestPhoneInterruption: when the caller speaks, the line is silent within 100 ms, and the model learns the extent of playback.
func TestPhoneInterruption(t *testing.T) {
	inCall(t, func(s *setting) { s.speed = 1 }, func(t *testing.T, provider string, st *stack, _ *rest) {
		c := st.call(t, "CA1")
		c.say(callerSpeech(time.Second))
		c.hear(time.Second)
		c.say(testutil.SpeechLike(8000, time.Second, 7))
		testutil.WaitUntil(t, "the line was cleared", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.cleared) > 0 })
		elapse(300 * time.Millisecond)
		c.mu.Lock()
		at := c.cleared[0]
		after := slices.Clone(c.played[at:])
		c.mu.Unlock()
		for i := range after[min(len(after), 100*8):] {
			if after[100*8+i] != 0xFF {
				t.Errorf("sound %d ms after the clear", 100+i/8)
				break
			}
		}
		if provider == "openai" {
			heardMS := int64(c.heardBytes() / 8)
			m := st.tap.wait(t, "conversation.item.truncate", func(m map[string]any) bool { return m["type"] == "conversation.item.truncate" })
			if reported := int64(m["audio_end_ms"].(float64)); reported < heardMS-200 || reported > heardMS+200 {
				t.Errorf("the model got %d ms; the caller heard %d", reported, heardMS)
			}
		}
	})
}

// likeness returns the highest correlation of audio at 8 kHz with audio at 24 kHz, over small time shifts.
func likeness(t *testing.T, heard, said []byte) (best float64) {
	t.Helper()
	down, err := audio.NewResampler(24000, 8000)
	if err != nil {
		t.Fatal(err)
	}
	a, b := fromSound(heard), fromSound(down.Flush(down.Process(nil, said)))
	if len(b) < 8000 {
		t.Fatalf("the model said only %d samples", len(b))
	}
	const most = 400
	for shift := -most; shift <= most; shift++ {
		var ab, aa, bb float64
		for i := range b {
			x := 0.0
			if j := i + shift; j >= 0 && j < len(a) {
				x = a[j]
			}
			ab, aa, bb = ab+x*b[i], aa+x*x, bb+b[i]*b[i]
		}
		best = max(best, ab/math.Sqrt(aa*bb+1))
	}
	return best
}

// fromSound returns the samples without the silence at the beginning.
func fromSound(pcm []byte) (all []float64) {
	for i := 0; i+1 < len(pcm); i += 2 {
		v := int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8)
		if len(all) > 0 || v > 300 || v < -300 {
			all = append(all, float64(v))
		}
	}
	return all
}

// TestPhoneRefuses: a forged, changed or replayed request begins no session.
func TestPhoneRefuses(t *testing.T) {
	inCall(t, nil, func(t *testing.T, _ string, st *stack, r *rest) {
		for name, tc := range map[string]struct {
			token, query string
			form         url.Values
			status       int
			word         string
		}{
			"forged":           {"guess", "", incoming("CA2"), 403, "signature"},
			"no token":         {"", "", incoming("CA2"), 403, "signature"},
			"another account":  {phoneToken, "", url.Values{"AccountSid": {"AC2"}, "CallSid": {"CA2"}}, 403, "account"},
			"no call":          {phoneToken, "", url.Values{"AccountSid": {"AC1"}}, 403, "names no call"},
			"a made-up query":  {phoneToken, "?call=AAAA", incoming("CA2"), 403, "not made by this gateway"},
			"another number":   {phoneToken, "", url.Values{"AccountSid": {"AC1"}, "CallSid": {"CA3"}, "To": {"+15550199"}}, 200, "<Response><Say>Sorry.</Say><Hangup/>"},
			"a call":           {phoneToken, "", incoming("CA4"), 200, "<Response><Connect>"},
			"without a caller": {phoneToken, "", url.Values{"AccountSid": {"AC1"}, "CallSid": {"CA5"}, "To": {"+15550101"}}, 200, "<Connect>"},
		} {
			status, body := st.webhook(t, tc.query, tc.token, tc.form)
			if status != tc.status || !strings.Contains(body, tc.word) {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
		if status, body := st.webhook(t, "", phoneToken, incoming("CA4")); status != 403 || strings.Contains(body, "ticket") {
			t.Errorf("a replayed call: %d %s", status, body)
		}
		for name, sign := range map[string]string{"no signature": "", "a webhook's": phone.Sign(phoneToken, "https://localhost/v1/phone/twilio", nil)} {
			_, resp, err := ws.Dial(t.Context(), st.url+phone.StreamPath(phone.Twilio), &websocket.DialOptions{HTTPClient: st.client,
				HTTPHeader: http.Header{"X-Twilio-Signature": {sign}}}, ws.Options{})
			if err == nil || resp != nil && resp.StatusCode == http.StatusSwitchingProtocols {
				t.Errorf("a stream with %s: %v", name, err)
			}
		}
		// A ticket opens one stream, only for its call.
		_, body := st.webhook(t, "", phoneToken, incoming("CA6"))
		first := st.answer(t, "CA6", body)
		first.say(callerSpeech(time.Second))
		first.hear(100 * time.Millisecond)
		second := st.answer(t, "CA6", body)
		<-second.over
		if first.isOver() {
			t.Error("the second stream has ended the first")
		}
		_, body = st.webhook(t, "", phoneToken, incoming("CA7"))
		<-st.answer(t, "CA8", body).over
		if asked := r.list(); len(asked) > 0 {
			t.Errorf("the carrier was asked for %q", asked)
		}
	})
}

const phoneToolScenario = `
name: phone
rules:
  - when: {text: 'phone] 7#'}
    do:
      - call: {tool: pay}
      - then: [say: "It is paid now."]
      - on_error: [say: "Shall I pay it? Then press one to approve it, or two to decline."]
  - when: {text: 'phone] 8#'}
    do:
      - call: {tool: transfer, args: {to: sales}}
      - then: [say: "I connect you with the sales department now. Goodbye."]
      - on_error: [say: "That is not possible."]
  - when: {text: 'phone] 9#'}
    do:
      - call: {tool: transfer, args: {to: police}}
      - then: [say: "I connect you."]
      - on_error: [say: "That is not possible."]
  - when: {text: 'phone] 0'}
    do:
      - call: {tool: goodbye}
      - then: [say: "Thank you for calling and goodbye."]
  - when: {text: any}
    do: [{say: "I see."}]
  - when: {utterance: any}
    do: [{say: "Hello."}]
`

// TestPhoneKeys: keys are text; 1 and 2 answer a question for approval once it was spoken.
func TestPhoneKeys(t *testing.T) {
	for name, tc := range map[string]struct {
		early bool
		key   string
		paid  int32
	}{"approved": {false, "1", 1}, "declined": {false, "2", 0}, "too early": {true, "1", 0}} {
		t.Run(name, func(t *testing.T) {
			var paid *atomic.Int32
			inCall(t, func(s *setting) {
				s.scenario = phoneToolScenario
				s.tools.registry, paid = phoneTools(t)
			}, func(t *testing.T, _ string, st *stack, _ *rest) {
				c := st.call(t, "CA1")
				elapse(200 * time.Millisecond)
				c.press("7#")
				c.hear(300 * time.Millisecond)
				if !tc.early {
					c.settle(time.Second)
				}
				before := c.heardBytes()
				c.press(tc.key)
				c.hear(time.Duration(before/8)*time.Millisecond + 100*time.Millisecond)
				c.settle(4 * time.Second)
				if got := paid.Load(); got != tc.paid {
					t.Errorf("paid %d times, want %d", got, tc.paid)
				}
				pressed := slices.ContainsFunc(st.tap.all(), func(m map[string]any) bool {
					text, _ := json.Marshal(m)
					return strings.Contains(string(text), prompts.KeysPressed("1")+`"`)
				})
				if pressed != tc.early {
					t.Errorf("the key was sent as text: %v", pressed)
				}
				c.hangUp()
				<-c.over
			})
		})
	}
}

// TestPhoneEnds: after the farewell the gateway hangs up, or connects the caller with a configured number.
func TestPhoneEnds(t *testing.T) {
	for keys, asked := range map[string][]string{
		"0":  {"POST /2010-04-01/Accounts/AC1/Calls/CA1.json Status=completed"},
		"8#": {"POST /2010-04-01/Accounts/AC1/Calls/CA1.json Twiml=" + url.QueryEscape(`<?xml version="1.0" encoding="UTF-8"?><Response><Dial>+15550123</Dial></Response>`)},
		"9#": nil,
	} {
		t.Run(keys, func(t *testing.T) {
			inCall(t, func(s *setting) { s.scenario = phoneToolScenario }, func(t *testing.T, _ string, st *stack, r *rest) {
				c := st.call(t, "CA1")
				elapse(200 * time.Millisecond)
				c.press(keys)
				c.hear(500 * time.Millisecond)
				c.settle(3 * time.Second)
				if over := c.isOver(); over != (asked != nil) {
					t.Errorf("the call is over: %v", over)
				}
				if diff := cmp.Diff(asked, r.list()); diff != "" {
					t.Error(diff)
				}
				c.mu.Lock()
				if len(c.queue) > 0 || len(c.marks) > 0 {
					t.Errorf("the call ended %d ms before the end of the farewell", len(c.queue)/8)
				}
				c.mu.Unlock()
			})
		})
	}
}

// TestPhoneLineFails: a broken, silent, flooding or otherwise faulty line ends the session, and the gateway asks the carrier to
// hang up.
func TestPhoneLineFails(t *testing.T) {
	for name, fail := range map[string]func(c *phoneCall){
		"cut":           func(c *phoneCall) { _ = c.conn.CloseNow() },
		"silent":        func(c *phoneCall) { c.mu.Lock(); c.mute = true; c.mu.Unlock() },
		"plays nothing": func(c *phoneCall) { c.mu.Lock(); c.noMarks = true; c.mu.Unlock() },
		"false marks": func(c *phoneCall) {
			for i := range 30 {
				c.send(&phone.Message{Event: phone.EventMark, StreamSID: "MZCA1", Mark: &phone.Mark{Name: fmt.Sprint("5-", i)}})
			}
		},
		"another stream": func(c *phoneCall) {
			for range 30 {
				c.send(&phone.Message{Event: phone.EventDTMF, StreamSID: "MZCA2", DTMF: &phone.DTMF{Digit: "*"}})
			}
		},
		"oversized": func(c *phoneCall) {
			_ = c.conn.Write(websocket.MessageText, bytes.Repeat([]byte(" "), phone.MaxMessage+1))
		},
		"binary": func(c *phoneCall) {
			for range 30 {
				_ = c.conn.Write(websocket.MessageBinary, make([]byte, 320))
			}
		},
		"flood": func(c *phoneCall) {
			for range 20_000 {
				if c.conn.Write(websocket.MessageText, []byte(`{"event":"mark","streamSid":"MZCA1","mark":{"name":"0-1"}}`)) != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCall(t, func(s *setting) { s.speed = 20 }, func(t *testing.T, _ string, st *stack, r *rest) {
				c := st.call(t, "CA1")
				c.say(callerSpeech(time.Second))
				c.hear(time.Second)
				failed := time.Now()
				fail(c)
				testutil.WaitUntil(t, "the session has ended", func() bool { return st.manager.Running() == 0 })
				if took := time.Since(failed); name == "silent" && took > 20*time.Second {
					t.Errorf("the silent line ended after %s, want 15 to 20 s", took)
				}
				<-c.over
				synctest.Wait()
				if asked := r.list(); len(asked) != 1 || !strings.HasSuffix(asked[0], "CA1.json Status=completed") {
					t.Errorf("the carrier was asked for %q", asked)
				}
			})
		})
	}
}

// TestPhoneTicketOfAnotherCall: a ticket opens no stream of another call, and the gateway does not end that call.
func TestPhoneTicketOfAnotherCall(t *testing.T) {
	inCall(t, func(*setting) {}, func(t *testing.T, _ string, st *stack, r *rest) {
		_, body := st.webhook(t, "", phoneToken, incoming("CA1"))
		c := st.answer(t, "CA2", body)
		select {
		case <-c.over:
		case <-time.After(time.Minute):
			t.Fatal("the stream stays open")
		}
		testutil.WaitUntil(t, "the session has ended", func() bool { return st.manager.Running() == 0 })
		synctest.Wait()
		if asked := r.list(); len(asked) != 0 {
			t.Errorf("the carrier was asked for %q", asked)
		}
	})
}

// TestPhoneCallsOut: an operator can call allowed numbers only; the user and request reach the conversation.
func TestPhoneCallsOut(t *testing.T) {
	inCall(t, nil, func(t *testing.T, _ string, st *stack, r *rest) {
		post := func(key, body string) (int, string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, st.url+phone.CallsPath, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			return st.do(t, req)
		}
		for body, want := range map[string]int{
			`{"to":"+4930123456"}`: 403, `{"to":"sales"}`: 403, `{"to":"+15559999","agent":"nobody"}`: 404, `{"to":"+15559999","x":1}`: 400,
			`{}`: 400, `{"to":"+15559999\n"}`: 403, `{"to":"+15559999","user":"a\n"}`: 400,
		} {
			if status, text := post(operatorsKey, body); status != want {
				t.Errorf("%s: %d %s", body, status, text)
			}
		}
		if status, _ := post("wrong", `{"to":"+15559999"}`); status != http.StatusUnauthorized {
			t.Errorf("with a wrong key: %d", status)
		}
		status, text := post(operatorsKey, `{"to":"+15559999","user":"ada","pending_request":"Remind of the visit."}`)
		if status != http.StatusCreated || !strings.Contains(text, `{"call_id":"CA77","conversation_id":"call-twilio-CA77"}`) {
			t.Fatalf("%d %s", status, text)
		}
		asked := r.list()
		_, form, _ := strings.Cut(asked[len(asked)-1], ".json ")
		values, err := url.ParseQuery(form)
		if err != nil || len(asked) != 1 || values.Get("To") != "+15559999" || values.Get("From") != "+15550100" {
			t.Fatalf("%q, %v", asked, err)
		}
		query := strings.TrimPrefix(values.Get("Url"), "https://localhost"+phone.VoicePath(phone.Twilio))
		out := url.Values{"AccountSid": {"AC1"}, "CallSid": {"CA77"}, "From": {"+15550100"}, "To": {"+15559999"}}
		wrong := maps.Clone(out)
		wrong.Set("To", "+15558888")
		if status, text := st.webhook(t, query, phoneToken, wrong); status != 403 {
			t.Errorf("for another call: %d %s", status, text)
		}
		if status, text := st.webhook(t, query, phoneToken, out); status != 200 || !strings.Contains(text, "<Connect>") {
			t.Errorf("%d %s", status, text)
		}
		in := st.desk.invited[0]
		if in.User != user.Must("ada") || !in.Vouched || in.PendingRequest != "Remind of the visit." || in.ConversationID != "call-twilio-CA77" {
			t.Errorf("%+v", in)
		}
	})
}

// elapse advances the time in a synctest bubble.
func elapse(d time.Duration) { <-time.After(d) }

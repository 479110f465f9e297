package phone

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"voicegw/internal/conversation"
	"voicegw/internal/ws"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/handoff"
	"voicegw/store"
)

// fakeVoice is a Voice that records its invitations.
type fakeVoice struct{ asked []handoff.Invitation }

func (d *fakeVoice) Invite(_ context.Context, in handoff.Invitation) (registry.VoiceOffer, error) {
	d.asked = append(d.asked, in)
	return registry.VoiceOffer{Ticket: "s3cret"}, nil
}

func (d *fakeVoice) Conversation(_ context.Context, id string) (*conversation.Conversation, error) {
	if id == "call-telnyx-v3-before" {
		return &conversation.Conversation{}, nil
	}
	return nil, store.ErrUnknown
}

// carriers is a server with all three carriers and their signing keys.
type carriers struct {
	*Server
	voice  *fakeVoice
	asked  []string // requests to the carriers' REST APIs
	says   string   // their answer; empty: one with the call's id
	telnyx ed25519.PrivateKey
	vonage *rsa.PrivateKey
}

func newCarriers(t *testing.T) *carriers {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &carriers{voice: &fakeVoice{}, telnyx: private, vonage: key}
	c.Server = New(Options{Voice: c.voice, Client: &http.Client{Transport: c}, Settings: Settings{
		PublicURL: "https://gw.example", Sorry: "Sorry.", Announcement: "Hello.", Transfers: map[string]string{"sales": "+15550123"},
		Outbound: Outbound{From: "+15550100", Prefixes: []string{"+1"}},
		Accounts: map[string]Account{
			Twilio: {ID: "AC1", Secret: "token", API: "https://twilio"},
			Telnyx: {ID: "T1", Secret: "KEY", PublicKey: base64.StdEncoding.EncodeToString(public), Application: "A1", API: "https://telnyx"},
			Vonage: {ID: "app", Secret: "vonage secret", PrivateKey: key, API: "https://vonage"},
		},
	}})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *carriers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	who, _, _ := strings.Cut(r.Header.Get("Authorization"), ".")
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ey"); ok {
		claims := jwt.MapClaims{}
		_, err = jwt.ParseWithClaims("ey"+token, claims, func(*jwt.Token) (any, error) { return &c.vonage.PublicKey, nil })
		who = "JWT of " + claims["application_id"].(string)
	}
	c.asked = append(c.asked, strings.Join([]string{r.Method, r.URL.String(), who, string(body)}, " "))
	status := http.StatusCreated
	if strings.Contains(r.URL.Path, "over") {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(c.answer()))}, err
}

func (c *carriers) answer() string {
	if c.says != "" {
		return c.says
	}
	return `{"uuid":"made"}`
}

// post sends a request, signed at that time, to a carrier's webhook.
func (c *carriers) post(carrier, query string, body []byte, at time.Time, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, VoicePath(carrier)+query, strings.NewReader(string(body)))
	switch carrier {
	case Telnyx:
		stamp := strconv.FormatInt(at.Unix(), 10)
		r.Header.Set("Telnyx-Timestamp", stamp)
		r.Header.Set("Telnyx-Signature-Ed25519", base64.StdEncoding.EncodeToString(ed25519.Sign(c.telnyx, append([]byte(stamp+"|"), body...))))
	case Vonage:
		r.Header.Set("Authorization", "Bearer "+vonageToken(body, at, "app", "vonage secret"))
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	c.Voice(carrier)(w, r)
	return w
}

func vonageToken(body []byte, at time.Time, app, secret string) string {
	sum := sha256.Sum256(body)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iat": at.Unix(), "jti": "1", "iss": "Vonage", "application_id": app,
		"payload_hash": hex.EncodeToString(sum[:])}).SignedString([]byte(secret))
	if err != nil {
		panic(err)
	}
	return token
}

func formOf(carrier, id string) []byte {
	if carrier == Vonage {
		return []byte(`{"from":"15557654321","to":"15550100","uuid":"` + id + `","conversation_uuid":"CON-1"}`)
	}
	return []byte(url.Values{"CallSid": {id}, "From": {"+15557654321"}, "To": {"+15550100"}}.Encode())
}

// TestOtherWebhooks: Telnyx and Vonage get an answer in their format once for each signed request.
func TestOtherWebhooks(t *testing.T) {
	answers := map[string]string{
		Telnyx: `<?xml version="1.0" encoding="UTF-8"?><Response><Connect><Stream url="wss://gw.example/v1/phone/telnyx" ` +
			`bidirectionalMode="rtp" codec="PCMU" bidirectionalCodec="PCMU"><Parameter name="ticket" value="s3cret"/></Stream></Connect>` +
			`<Say>Sorry.</Say><Hangup/></Response>`,
		Vonage: `[{"action":"connect","endpoint":[{"authorization":{"type":"vonage"},` +
			`"content-type":"audio/l16;rate=8000","headers":{"call":"v3:a","ticket":"s3cret"},"type":"websocket",` +
			`"uri":"wss://gw.example/v1/phone/vonage"}]},{"action":"talk","text":"Sorry."}]`,
	}
	for carrier, want := range answers {
		t.Run(carrier, func(t *testing.T) {
			c := newCarriers(t)
			body := formOf(carrier, "v3:a")
			w := c.post(carrier, "", body, time.Now(), nil)
			if diff := cmp.Diff(want, w.Body.String()); diff != "" || w.Code != http.StatusOK {
				t.Error(w.Code, diff)
			}
			if in := c.voice.asked[0]; in.User.String() != "+15557654321" || in.Vouched || in.ConversationID != "call-"+carrier+"-v3-a" {
				t.Errorf("%+v", in)
			}
			for name, w := range map[string]*httptest.ResponseRecorder{
				"replayed":     c.post(carrier, "", body, time.Now(), nil),
				"old":          c.post(carrier, "", formOf(carrier, "v3:b"), time.Now().Add(-10*time.Minute), nil),
				"another body": c.post(carrier, "", body, time.Now(), func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(string(formOf(carrier, "v3:c")))) }),
				"no signature": c.post(carrier, "", formOf(carrier, "v3:d"), time.Now(), func(r *http.Request) { r.Header = http.Header{} }),
				"too large":    c.post(carrier, "", make([]byte, maxBody+1), time.Now(), nil),
			} {
				if w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "s3cret") {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
			}
			if len(c.voice.asked) != 1 {
				t.Errorf("%d tickets, want 1", len(c.voice.asked))
			}
		})
	}
	c := newCarriers(t)
	if w := c.post(Telnyx, "", formOf(Telnyx, "v3:before"), time.Now(), nil); w.Code != http.StatusForbidden {
		t.Errorf("a call that an earlier process answered: %d", w.Code)
	}
	for hint, token := range map[string]string{
		"phone.vonage.application.": vonageToken(formOf(Vonage, "x"), time.Now(), "other", "vonage secret"),
		"phone.public_url.":         vonageToken(formOf(Vonage, "x"), time.Now(), "app", "guess"),
		"signature":                 "",
	} {
		w := c.post(Vonage, "", formOf(Vonage, "x"), time.Now(), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), hint) {
			t.Errorf("%s: %d %s", hint, w.Code, w.Body)
		}
	}
}

// TestVonageUpgrade: the token of an upgrade has no hash of a body.
func TestVonageUpgrade(t *testing.T) {
	c := newCarriers(t)
	for token, ok := range map[string]bool{vonageToken(nil, time.Now(), "app", "vonage secret"): true, "": false,
		vonageToken(nil, time.Now(), "app", "guess"): false} {
		r := httptest.NewRequest(http.MethodGet, StreamPath(Vonage), nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if got := c.Verify(Vonage, httptest.NewRecorder(), r); got != ok {
			t.Errorf("%q: %v", token, got)
		}
	}
	c.Reconfigure(Settings{})
	for _, carrier := range Carriers() {
		if c.Verify(carrier, httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, StreamPath(carrier), nil)) {
			t.Errorf("%s opens streams although it is not configured", carrier)
		}
	}
}

// TestTwilioAddresses: a signature covers the public address, with or without its port, and the request's path and query.
func TestTwilioAddresses(t *testing.T) {
	c := newCarriers(t)
	form := url.Values{"AccountSid": {"AC1"}, "To": {"+15550100"}, "From": {"Jürgen 😀", "a+b&c", "a+b&c"}}
	for i, tc := range []struct {
		public, signed, query string
		ok                    bool
	}{
		{"https://gw.example", "https://gw.example", "", true}, {"https://gw.example", "https://gw.example:443", "", true},
		{"https://gw.example", "https://gw.example:8443", "", false}, {"https://gw.example", "http://gw.example", "", false},
		{"https://gw.example:8443", "https://gw.example:8443", "", true}, {"https://gw.example:8443", "https://gw.example", "", true},
		{"https://gw.example:8443", "https://gw.example:443", "", false}, {"https://[::1]:8443", "https://[::1]", "", true},
		{"https://gw.example", "https://gw.example", "?line=a%20b+c&x", true},
	} {
		set := *c.settings()
		set.PublicURL = tc.public
		c.Reconfigure(set)
		form.Set("CallSid", "CA"+strconv.Itoa(i))
		sign := func(at, path string, form url.Values) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("X-Twilio-Signature", Sign("token", at+path+tc.query, form)) }
		}
		want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[tc.ok]
		if w := c.post(Twilio, tc.query, []byte(form.Encode()), time.Now(), sign(tc.signed, VoicePath(Twilio), form)); w.Code != want {
			t.Errorf("%+v: %d %s", tc, w.Code, w.Body)
		}
		r := httptest.NewRequest(http.MethodGet, StreamPath(Twilio)+tc.query, nil)
		sign(strings.Replace(tc.signed, "http", "ws", 1), StreamPath(Twilio), nil)(r)
		if ok := c.Verify(Twilio, httptest.NewRecorder(), r); ok != tc.ok {
			t.Errorf("%+v: the upgrade is accepted: %v", tc, ok)
		}
	}
}

// TestRequests: each carrier gets requests to hang up, transfer and call in its format; it is not an error if the call has ended.
func TestRequests(t *testing.T) {
	transfer := url.QueryEscape(`<?xml version="1.0" encoding="UTF-8"?><Response><Dial>+15550123</Dial></Response>`)
	for carrier, want := range map[string][]string{
		Telnyx: {
			"POST https://telnyx/v2/texml/Accounts/T1/Calls/v3:a Bearer KEY Status=completed",
			"POST https://telnyx/v2/texml/Accounts/T1/Calls/v3:a Bearer KEY Texml=" + transfer,
			"POST https://telnyx/v2/texml/Accounts/T1/Calls/over Bearer KEY Status=completed",
		},
		Vonage: {
			`PUT https://vonage/v1/calls/v3:a JWT of app {"action":"hangup"}`,
			`PUT https://vonage/v1/calls/v3:a JWT of app {"action":"transfer","destination":{"ncco":[{"action":"connect","endpoint":` +
				`[{"number":"15550123","type":"phone"}]}],"type":"ncco"}}`,
			`PUT https://vonage/v1/calls/over JWT of app {"action":"hangup"}`,
		},
	} {
		t.Run(carrier, func(t *testing.T) {
			c := newCarriers(t)
			for _, how := range []struct{ id, to string }{{"v3:a", ""}, {"v3:a", "sales"}, {"over", ""}} {
				done := make(chan struct{})
				c.release(call{carrier: carrier, id: how.id}, ending{begun: true, transfer: how.to}, done)
				<-done
			}
			if diff := cmp.Diff(want, c.asked); diff != "" {
				t.Error(diff)
			}
			for name, how := range map[string]ending{"refused": {}, "hung up": {begun: true, stopped: true}} {
				done := make(chan struct{})
				c.release(call{carrier: carrier, id: "v3:a"}, how, done)
				if <-done; len(c.asked) != len(want) {
					t.Errorf("%s: %q", name, c.asked)
				}
			}
			set := *c.settings()
			set.Outbound.Carrier = carrier
			c.Reconfigure(set)
			begun, err := c.Dial(t.Context(), Outgoing{To: "+15559999", Request: "Hello"})
			if err != nil || begun.CallID != "made" || begun.ConversationID != "call-"+carrier+"-made" {
				t.Fatalf("%+v, %v", begun, err)
			}
			_, query, _ := strings.Cut(c.asked[len(c.asked)-1], "?call=")
			if query == "" {
				_, query, _ = strings.Cut(c.asked[len(c.asked)-1], url.QueryEscape("?call="))
			}
			query, _, _ = strings.Cut(query, `"`)
			body := []byte(url.Values{"CallSid": {"made"}, "From": {"+15550100"}, "To": {"+15559999"}}.Encode())
			if carrier == Vonage {
				body = []byte(`{"from":"15550100","to":"15559999","uuid":"made"}`)
			}
			if w := c.post(carrier, "?call="+query, body, time.Now(), nil); w.Code != 200 || c.voice.asked[0].PendingRequest != "Hello" {
				t.Errorf("%d %s %+v", w.Code, w.Body, c.voice.asked)
			}
		})
	}
}

// TestMoves: each carrier gets a request in its format to open another stream, whose start resumes the session. A call that has
// ended, or has no session to resume, does not move.
func TestMoves(t *testing.T) {
	const open = `<Parameter name="heard" value="250"/><Parameter name="item" value="item_1"/><Parameter name="seq" value="7"/>` +
		`<Parameter name="session" value="voice-1"/><Parameter name="token" value="t&amp;k"/></Stream></Connect>`
	stream := func(carrier, attributes string) string {
		one := `<Connect><Stream url="wss://gw.example/v1/phone/` + carrier + `"` + attributes + `>` + open
		return url.QueryEscape(`<?xml version="1.0" encoding="UTF-8"?><Response>` + one + strings.Repeat(movePause+one, 3) + `<Say>Sorry.</Say><Hangup/></Response>`)
	}
	resume := &protocol.Resume{SessionID: "voice-1", Token: "t&k", LastSeq: 7, Audio: &protocol.ResumeAudio{ItemID: "item_1", ReceivedMS: 250}}
	for carrier, want := range map[string]string{
		Twilio: "POST https://twilio/2010-04-01/Accounts/AC1/Calls/CA1.json Basic QUMxOnRva2Vu Twiml=" + stream(Twilio, ""),
		Telnyx: "POST https://telnyx/v2/texml/Accounts/T1/Calls/CA1 Bearer KEY Texml=" +
			stream(Telnyx, ` bidirectionalMode="rtp" codec="PCMU" bidirectionalCodec="PCMU"`),
		Vonage: `PUT https://vonage/v1/calls/CA1 JWT of app {"action":"transfer","destination":{"ncco":[{"action":"connect","endpoint":[` +
			`{"authorization":{"type":"vonage"},"content-type":"audio/l16;rate=8000","headers":{"call":"CA1","heard":"250","item":"item_1",` +
			`"seq":"7","session":"voice-1","token":"t\u0026k"},"type":"websocket","uri":"wss://gw.example/v1/phone/vonage"}]},` +
			`{"action":"talk","text":"Sorry."}],"type":"ncco"}}`,
	} {
		c := newCarriers(t)
		for name, tc := range map[string]struct {
			token        string
			moves, stops bool
		}{
			"moved": {"t&k", true, false}, "no session": {"", true, false}, "ended": {"t&k", false, false}, "hung up already": {"t&k", true, true},
		} {
			c.asked = nil
			conn := &Conn{Conn: &ws.Conn{}, server: c.Server, hungUp: make(chan struct{}), call: call{carrier: carrier, id: "CA1"}, begun: true,
				session: "voice-1", token: tc.token, seq: 7, stopped: tc.stops, heard: protocol.ResumeAudio{ItemID: "item_1", ReceivedMS: 250}}
			conn.end(tc.moves)
			<-conn.hungUp
			asked := strings.Join(c.asked, "\n")
			if moves := name == "moved"; (asked == want) != moves || strings.Contains(asked, "voice-1") != moves || (asked == "") != tc.stops {
				t.Errorf("%s: %s: the carrier got\n%s\nwant\n%s", carrier, name, asked, want)
			}
			if got := resumeOf(conn.leave()); name == "moved" && !reflect.DeepEqual(got, resume) {
				t.Errorf("%s: the next stream resumes %+v", carrier, got)
			}
		}
	}
	again := &Conn{server: newCarriers(t).Server, session: "voice-1", token: "t&k", seq: 7}
	again.start(resume)
	if got := resumeOf(again.leave()); !reflect.DeepEqual(got, resume) {
		t.Errorf("a call that moves again at once resumes %+v", got)
	}
	if r := resumeOf(map[string]string{"ticket": "t"}); r != nil {
		t.Errorf("a new call resumes %+v", r)
	}
	if r := resumeOf(map[string]string{"session": "s", "seq": "-1", "heard": "x"}); r.LastSeq != 0 || r.Audio != nil {
		t.Errorf("wrong numbers give %+v", r)
	}
}

// TestOutcomes: each call counts once, under its outcome.
func TestOutcomes(t *testing.T) {
	c := newCarriers(t)
	c.post(Vonage, "", formOf(Vonage, "1"), time.Now(), func(r *http.Request) { r.Header.Del("Authorization") })
	for _, how := range []ending{{}, {begun: true}, {begun: true, stopped: true}, {begun: true, transfer: "sales"},
		{begun: true, resume: map[string]string{}}} {
		done := make(chan struct{})
		c.release(call{carrier: Telnyx, id: "1"}, how, done)
		<-done
	}
	c.release(call{}, ending{}, make(chan struct{}))
	want := map[Outcome]uint64{{Vonage, "refused"}: 1, {Telnyx, "failed"}: 1, {Telnyx, "ended"}: 1, {Telnyx, "hung_up"}: 1, {Telnyx, "transferred"}: 1,
		{Telnyx, "moved"}: 1}
	if diff := cmp.Diff(want, c.Stats()); diff != "" {
		t.Error(diff)
	}
}

// TestDialLimits: the gateway calls allowed numbers only, up to PerMinute.
func TestDialLimits(t *testing.T) {
	c := newCarriers(t)
	set := *c.settings()
	set.Outbound = Outbound{From: "+15550100", Carrier: Twilio, Prefixes: []string{"+1555"}, PerMinute: 2}
	c.Reconfigure(set)
	for _, tc := range []struct {
		out  Outgoing
		want error
	}{
		{Outgoing{To: "+4930123456"}, ErrNumber}, {Outgoing{To: "15559999"}, ErrNumber}, {Outgoing{To: "+1555"}, ErrNumber},
		{Outgoing{To: "+15559999", Request: strings.Repeat("x", maxRequest+1)}, ErrRequest},
		{Outgoing{To: "+15559999"}, nil}, {Outgoing{To: "+15559999"}, nil}, {Outgoing{To: "+15559999"}, ErrTooMany},
	} {
		if _, err := c.Dial(t.Context(), tc.out); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.out, err, tc.want)
		}
	}
	set.Outbound.From = ""
	c.Reconfigure(set)
	if _, err := c.Dial(t.Context(), Outgoing{To: "+15559999"}); !errors.Is(err, ErrNoOutbound) {
		t.Error(err)
	}
}

// TestDialAnswers: an answer without the call's id is an error, except at Telnyx, where the id is optional.
func TestDialAnswers(t *testing.T) {
	c := newCarriers(t)
	for _, tc := range []struct {
		carrier, says, id string
		fails             bool
	}{
		{Twilio, `{"sid":"CA1"}`, "CA1", false}, {Twilio, `{}`, "", true}, {Twilio, `<html>`, "", true}, {Vonage, `{"uuid":""}`, "", true},
		{Telnyx, `{"call_sid":"v3","status":"queued"}`, "v3", false}, {Telnyx, `{"status":"queued"}`, "", false}, {Telnyx, `queued`, "", true},
	} {
		c.says = tc.says
		set := *c.settings()
		set.Outbound.Carrier = tc.carrier
		c.Reconfigure(set)
		want := Begun{CallID: tc.id}
		if tc.id != "" {
			want.ConversationID = "call-" + tc.carrier + "-" + tc.id
		}
		if begun, err := c.Dial(t.Context(), Outgoing{To: "+15559999"}); begun != want || (err != nil) != tc.fails {
			t.Errorf("%+v: %+v, %v", tc, begun, err)
		}
	}
}

// TestCallers: a number is a user; each call with a withheld number is a new user.
func TestCallers(t *testing.T) {
	if who := caller("+15557654321"); who.String() != "+15557654321" || who.Anonymous() {
		t.Errorf("%v", who)
	}
	for _, number := range []string{"", "anonymous", "Restricted", "+266696687", "127.0.0.1", "anonymous:abc", "\x00"} {
		if one, two := caller(number), caller(number); !one.Anonymous() || one == two {
			t.Errorf("%q is %v and %v", number, one, two)
		}
	}
}

// TestOtherStreams: the messages of Telnyx and Vonage are read and written in their formats.
func TestOtherStreams(t *testing.T) {
	for carrier, tc := range map[string]struct {
		start, key, mark, stop string
		audio                  []byte
		typ                    websocket.MessageType
		ask                    []string
	}{
		Telnyx: {
			start: `{"event":"start","sequence_number":"1","stream_id":"S1","start":{"call_control_id":"v3:a","custom_parameters":{"ticket":"t"},` +
				`"media_format":{"encoding":"PCMA","sample_rate":8000,"channels":1}}}`,
			key:   `{"event":"dtmf","stream_id":"S1","sequence_number":"5","dtmf":{"digit":"1"}}`,
			mark:  `{"event":"mark","stream_id":"S1","mark":{"name":"2-7"}}`,
			stop:  `{"event":"stop","stream_id":"S1","stop":{"user_id":"u","call_control_id":"v3:a"}}`,
			audio: []byte(`{"event":"media","media":{"track":"inbound","chunk":"2","timestamp":"5","payload":"1dU="},"sequence_number":"4","stream_id":"S1"}`),
			typ:   websocket.MessageText,
			ask:   []string{`{"event":"media","media":{"payload":"1dU="}}`, `{"event":"mark","mark":{"name":"2-7"}}`, `{"event":"clear"}`},
		},
		Vonage: {
			start: `{"event":"websocket:connected","content-type":"audio/l16;rate=8000","ticket":"t","call":"v3:a"}`,
			key:   `{"event":"websocket:dtmf","digit":"1","duration":260}`,
			mark:  `{"event":"websocket:notify","payload":{"name":"2-7"}}`,
			audio: make([]byte, 4), typ: websocket.MessageBinary,
			ask: []string{"\x00\x00\x00\x00", `{"action":"notify","payload":{"name":"2-7"}}`, `{"action":"clear"}`},
		},
	} {
		t.Run(carrier, func(t *testing.T) {
			s := &stream{dialect: dialects[carrier]}
			var e event
			read := func(typ websocket.MessageType, data string, want kind) {
				t.Helper()
				if err := s.read(typ, []byte(data), &e); err != nil || e.kind != want {
					t.Errorf("%s is %d, %v", data, e.kind, err)
				}
			}
			read(websocket.MessageText, tc.start, started)
			if e.call.id != "v3:a" || e.parameters["ticket"] != "t" {
				t.Errorf("%+v", e)
			}
			read(websocket.MessageText, tc.key, pressed)
			if e.key != '1' {
				t.Errorf("the key is %q", e.key)
			}
			read(websocket.MessageText, tc.mark, marked)
			if e.gen != 2 || e.mark != 7 {
				t.Errorf("the mark is %d-%d", e.gen, e.mark)
			}
			read(tc.typ, string(tc.audio), spoke)
			pcm := e.format.decode(nil, e.audio)
			if len(pcm) != 4 {
				t.Errorf("%d bytes of PCM", len(pcm))
			}
			sent := []string{string(s.appendMedia(nil, e.format.encode(nil, pcm))), string(s.appendMark(nil, 2, 7)), string(s.appendClear(nil, 0, 0))}
			if diff := cmp.Diff(tc.ask, sent); diff != "" {
				t.Error(diff)
			}
			if tc.stop != "" {
				read(websocket.MessageText, tc.stop, stopped)
			}
			if err := s.read(websocket.MessageText, []byte(tc.start), &e); err == nil {
				t.Error("a second start is accepted")
			}
		})
	}
}

// FuzzStream: no message of a carrier breaks a stream, and its audio is bounded.
func FuzzStream(f *testing.F) {
	start := []byte(`{"event":"start","streamSid":"S1","stream_id":"S1","start":{"callSid":"CA1","call_control_id":"CA1","streamSid":"S1",` +
		`"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1},"media_format":{"encoding":"PCMU","sample_rate":8000}}}`)
	vonage := []byte(`{"event":"websocket:connected","content-type":"audio/l16;rate=8000","call":"v3:a"}`)
	for _, text := range []string{`{"event":"mark","streamSid":"S1","mark":{"name":"0-1"}}`, `{"event":"websocket:notify","payload":{"name":"1-1"}}`,
		`{"event":"media","streamSid":"S1","media":{"track":"inbound","payload":"AAAA"}}`, `{"event":"dtmf","dtmf":{"digit":"#"}}`, `{"event":"stop"}`,
		`{"event":"websocket:dtmf","digit":"1"}`} {
		f.Add(byte(0), false, []byte(text))
		f.Add(byte(2), true, []byte(text))
	}
	f.Fuzz(func(t *testing.T, which byte, binary bool, data []byte) {
		carrier := Carriers()[int(which)%3]
		for _, first := range [][]byte{nil, start, vonage} {
			s := &stream{dialect: dialects[carrier]}
			var e event
			_ = s.read(websocket.MessageText, first, &e) // fails for another carrier's start
			typ := websocket.MessageText
			if binary {
				typ = websocket.MessageBinary
			}
			begun := s.begun
			err := s.read(typ, data, &e)
			switch {
			case err != nil && e.kind == spoke, e.kind == spoke && (!begun || len(e.audio) == 0 || len(e.audio) > 2*MaxPayload+2):
				t.Errorf("%s: audio of %d bytes, %v", carrier, len(e.audio), err)
			case err == nil && e.kind == pressed && !IsKey(string(e.key)):
				t.Errorf("the key %q", e.key)
			}
		}
	})
}

// FuzzWebhook: a request without a valid signature gets no ticket.
func FuzzWebhook(f *testing.F) {
	f.Add([]byte(`CallSid=CA1&From=%2B1`), "call=AAAA", "sig")
	f.Add([]byte(`{"uuid":"1"}`), "", "Bearer a.b.c")
	s := New(Options{Voice: &fakeVoice{}, Settings: Settings{PublicURL: "https://gw.example", Accounts: map[string]Account{
		Twilio: {Secret: "t"}, Telnyx: {PublicKey: base64.StdEncoding.EncodeToString(make([]byte, 31))}, Vonage: {Secret: "v"}}}})
	f.Fuzz(func(t *testing.T, body []byte, query, sign string) {
		for _, carrier := range Carriers() {
			r := httptest.NewRequest(http.MethodPost, VoicePath(carrier), strings.NewReader(string(body)))
			r.URL.RawQuery = query
			r.Header = http.Header{"X-Twilio-Signature": {sign}, "Authorization": {sign}, "Telnyx-Signature-Ed25519": {sign}, "Telnyx-Timestamp": {query}}
			w := httptest.NewRecorder()
			s.Voice(carrier)(w, r)
			if w.Code != http.StatusForbidden {
				t.Errorf("%s: %d %s", carrier, w.Code, w.Body)
			}
		}
	})
}

package wire

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	phone "voicegw/gateway/phone"
	"voicegw/internal/bounded"
	"voicegw/internal/textutil"
)

// CarrierOptions describe a simulated carrier.
type CarrierOptions struct {
	Account string `help:"Account SID of the gateway's phone.twilio." default:"AC00000000000000000000000000000000" placeholder:"SID"`
	Token   string `help:"Its auth token, which signs requests; prefer VOICEGW_PHONE_TWILIO_AUTH_TOKEN." placeholder:"TOKEN"`
	Public  string `help:"The gateway's phone.public_url, which is signed (default: its address)." placeholder:"URL" name:"public-url"`
	To      string `help:"Called number." default:"+15550100" placeholder:"NUMBER"`

	Listen string `help:"Address for the gateway's phone.twilio.api (sim phone: 127.0.0.1:8091)." placeholder:"HOST:PORT" name:"listen"`

	// Gateway is the gateway's address for HTTP, such as http://127.0.0.1:8080.
	Gateway string `kong:"-"`
	// Client makes the requests; nil means the default.
	Client *http.Client `kong:"-"`
	// Note, if set, is called with each event of a call, for a person, from any goroutine.
	Note func(text string) `kong:"-"`
}

// Carrier simulates Twilio: it announces calls to the gateway's webhook, follows the answer, and serves the part of the
// REST API that the gateway uses (https://www.twilio.com/docs/voice/api/call-resource, read 2026-11-30). It is safe for
// concurrent use.
type Carrier struct {
	o      CarrierOptions
	placed chan call // calls that the gateway has ordered; never closed

	mu    sync.Mutex // guards the following field
	calls map[string]*Phone
}

// call is a call before its stream.
type call struct {
	sid, stream, account, from, to, direction string
	// twiml is an inline document, webhook the address of one; both may be empty.
	twiml, webhook string
	parameters     map[string]string
}

// NewCarrier returns a carrier.
func NewCarrier(o CarrierOptions) *Carrier {
	if o.Note == nil {
		o.Note = func(string) {}
	}
	o.Gateway = strings.TrimSuffix(o.Gateway, "/")
	o.Public = strings.TrimSuffix(cmp.Or(o.Public, o.Gateway), "/")
	return &Carrier{o: o, placed: make(chan call, 1), calls: map[string]*Phone{}}
}

// TwilioPath is the gateway's endpoint for Twilio, and VoicePath its webhook for calls.
const (
	TwilioPath = "/v1/phone/twilio"
	VoicePath  = TwilioPath + "/voice"
)

// Serve serves the REST API at CarrierOptions.Listen, if it is set, until stop is called.
func (c *Carrier) Serve(ctx context.Context) (stop func() error, err error) {
	if c.o.Listen == "" {
		return func() error { return nil }, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.o.Listen)
	if err != nil {
		return nil, fmt.Errorf("the carrier cannot serve on %s: %w; choose another address", c.o.Listen, err)
	}
	c.o.Note("the carrier's REST API is http://" + listener.Addr().String())
	served := make(chan error, 1) // the result of Serve
	h := &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}
	go func() { served <- h.Serve(listener) }()
	return func() error {
		err := h.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	}, nil
}

// Call calls the gateway's number from a number. ctx applies only until the stream has begun.
func (c *Carrier) Call(ctx context.Context, from string) (*Phone, error) {
	return c.connect(ctx, call{sid: newSID("CA"), from: from, to: c.o.To, direction: "inbound", webhook: c.o.Public + VoicePath})
}

// Await answers the next call that the gateway orders over the REST API. ctx applies until its stream has begun.
func (c *Carrier) Await(ctx context.Context) (*Phone, error) {
	select {
	case placed := <-c.placed:
		return c.connect(ctx, placed)
	case <-ctx.Done():
		return nil, fmt.Errorf("no call was ordered: %w", context.Cause(ctx))
	}
}

func newSID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// connect gets the call's document and opens its stream.
func (c *Carrier) connect(ctx context.Context, made call) (*Phone, error) {
	made.account, made.stream = c.o.Account, newSID("MZ")
	c.o.Note(fmt.Sprintf("%s call from %s to %s", made.direction, made.from, made.to))
	if made.twiml == "" {
		document, err := c.ask(ctx, made)
		if err != nil {
			return nil, fmt.Errorf("the webhook: %w", err)
		}
		made.twiml = document
	}
	stream, rest, err := c.follow(made.twiml)
	if err != nil {
		return nil, err
	}
	made.parameters = map[string]string{}
	for _, p := range stream.Parameters {
		made.parameters[p.Name] = p.Value
	}
	at, err := c.reachable(stream.URL)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, at, http.Header{"X-Twilio-Signature": {phone.Sign(c.o.Token, stream.URL, nil)}}, c.o.Client, phone.MaxMessage)
	if err != nil {
		return nil, fmt.Errorf("the stream: %w", err)
	}
	p := newPhone(conn, made, c.o.Note, func() { c.forget(made.sid) })
	p.rest = rest
	c.mu.Lock()
	c.calls[made.sid] = p
	c.mu.Unlock()
	if err := p.greet(made); err != nil {
		p.Abort()
		return nil, fmt.Errorf("the stream: %w", err)
	}
	c.o.Note("the stream is open")
	return p, nil
}

func (c *Carrier) forget(sid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, sid)
}

// reachable replaces the gateway's public address, which need not exist, by its real one.
func (c *Carrier) reachable(address string) (string, error) {
	public, err := url.Parse(c.o.Public)
	if err != nil {
		return "", fmt.Errorf("the public URL %q: %w", c.o.Public, err)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", fmt.Errorf("the address %q: %w", address, err)
	case u.Host != public.Host:
		return address, nil
	}
	return c.o.Gateway + strings.TrimPrefix(u.RequestURI(), public.Path), nil
}

var webhookLimits = bounded.Limits{Service: "the gateway", Bytes: 64 << 10}

// ask sends the webhook of a call and returns the document.
func (c *Carrier) ask(ctx context.Context, made call) (string, error) {
	form := url.Values{"CallSid": {made.sid}, "AccountSid": {made.account}, "From": {made.from}, "To": {made.to},
		"Direction": {made.direction}, "CallStatus": {"ringing"}, "ApiVersion": {"2010-04-01"}}
	at, err := c.reachable(made.webhook)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Twilio-Signature", phone.Sign(c.o.Token, made.webhook, form))
	resp, err := bounded.Client(c.o.Client, webhookLimits).Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the gateway answered %s: %s", resp.Status, textutil.Shorten(string(body), maxShown))
	default:
		return string(body), nil
	}
}

// twiml is a document in the part of Twilio's markup that the gateway uses.
type twiml struct {
	XMLName xml.Name `xml:"Response"`
	Verbs   []verb   `xml:",any"`
}

type verb struct {
	XMLName xml.Name
	Text    string      `xml:",chardata"`
	Number  string      `xml:"Number"`
	Stream  *streamNoun `xml:"Stream"`
}

type streamNoun struct {
	URL        string `xml:"url,attr"`
	Parameters []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	} `xml:"Parameter"`
}

// follow carries out a document up to its stream, and returns the verbs after it. Without a stream the error says what
// happens instead.
func (c *Carrier) follow(document string) (*streamNoun, []verb, error) {
	var t twiml
	if err := xml.Unmarshal([]byte(document), &t); err != nil {
		return nil, nil, fmt.Errorf("the answer is not TwiML: %w: %s", err, textutil.Shorten(document, maxShown))
	}
	for i, v := range t.Verbs {
		switch v.XMLName.Local {
		case "Dial":
			return nil, nil, &transfer{cmp.Or(strings.TrimSpace(v.Number), strings.TrimSpace(v.Text))}
		case "Reject", "Hangup":
			return nil, nil, fmt.Errorf("the gateway declined the call: <%s>", v.XMLName.Local)
		case "Connect":
			switch s := v.Stream; {
			case s == nil || s.URL == "":
				return nil, nil, errors.New("<Connect> has no <Stream> with a url")
			case strings.Contains(s.URL, "?"):
				return nil, nil, fmt.Errorf("the stream's url %s has a query, which Twilio refuses (error 31922)", s.URL)
			default:
				return s, t.Verbs[i+1:], nil
			}
		}
		c.o.Note(v.inWords())
	}
	return nil, nil, errors.New("the document has no <Stream>, so the call ends")
}

func (v verb) inWords() string {
	if v.XMLName.Local == "Say" {
		return "the carrier says: " + strings.TrimSpace(v.Text)
	}
	return "the carrier carries out <" + v.XMLName.Local + ">"
}

// transfer is the error of a call that is connected to a number instead of a stream.
type transfer struct{ number string }

func (t *transfer) Error() string { return "the call is transferred to " + t.number }

// apiPath begins the REST API's paths of calls, under the account.
const apiPath = "/2010-04-01/Accounts/"

// ServeHTTP serves the REST API: POST Calls.json orders a call, POST Calls/SID.json ends or transfers one.
func (c *Carrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	r.Body = http.MaxBytesReader(w, r.Body, webhookLimits.Bytes)
	resource, known := strings.CutPrefix(r.URL.Path, apiPath+c.o.Account+"/")
	switch {
	case user != c.o.Account || subtle.ConstantTimeCompare([]byte(password), []byte(c.o.Token)) != 1:
		refuse(w, http.StatusUnauthorized, 20003, "Authenticate")
	case !known || r.Method != http.MethodPost:
		refuse(w, http.StatusNotFound, 20404, "The requested resource was not found")
	case r.ParseForm() != nil:
		refuse(w, http.StatusBadRequest, 20001, "The form cannot be read")
	case resource == "Calls.json":
		c.order(w, r.PostForm)
	default:
		c.mu.Lock()
		p := c.calls[strings.TrimSuffix(path.Base(resource), ".json")]
		c.mu.Unlock()
		if p == nil || !strings.HasPrefix(resource, "Calls/") {
			refuse(w, http.StatusNotFound, 20404, "The requested resource was not found")
			return
		}
		c.change(w, p, r.PostForm)
	}
}

// order takes a call to a person. Only one waits for its answer.
func (c *Carrier) order(w http.ResponseWriter, form url.Values) {
	made := call{sid: newSID("CA"), from: form.Get("From"), to: form.Get("To"), direction: "outbound-api",
		webhook: form.Get("Url"), twiml: form.Get("Twiml")}
	if made.from == "" || made.to == "" || made.webhook == "" && made.twiml == "" {
		refuse(w, http.StatusBadRequest, 21201, "To, From, and Url or Twiml are required")
		return
	}
	select {
	case c.placed <- made:
		c.o.Note(fmt.Sprintf("the gateway orders a call to %s", made.to))
		reply(w, http.StatusCreated, map[string]string{"sid": made.sid, "status": "queued", "to": made.to, "from": made.from})
	default:
		refuse(w, http.StatusTooManyRequests, 20429, "Another call waits for its answer")
	}
}

func (c *Carrier) change(w http.ResponseWriter, p *Phone, form url.Values) {
	document := form.Get("Twiml")
	status := form.Get("Status")
	var moved *transfer
	switch _, _, err := c.follow(document); {
	case document == "" && (status == "completed" || status == "canceled"):
		c.o.Note("the gateway hangs up")
	case document != "" && errors.As(err, &moved):
		c.o.Note("the gateway transfers the call to " + moved.number)
		status = "in-progress"
	default:
		refuse(w, http.StatusBadRequest, 21218, fmt.Sprintf("Status must be completed, or Twiml must have Dial; got %v",
			slices.Sorted(maps.Keys(form))))
		return
	}
	p.End(endedByModel)
	reply(w, http.StatusOK, map[string]string{"sid": p.CallSID, "status": status})
}

func refuse(w http.ResponseWriter, status, code int, message string) {
	reply(w, status, map[string]any{"code": code, "message": message, "status": status})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the gateway has hung up
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/gateway/phone"
	"voicegw/internal/testutil"
	"voicegw/internal/ws"
)

// restOfCarrier is a carrier's REST API.
type restOfCarrier struct {
	mu    sync.Mutex
	asked []string
}

func (c *restOfCarrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, r.URL.Path+" "+string(body))
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"sid":"CA2"}`)
}

func (c *restOfCarrier) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return ""
	}
	return c.asked[len(c.asked)-1]
}

// TestPhonePage follows docs/phone.md: a gateway starts with the page's settings, its webhook takes a call, the caller hears
// the agent, and the page's request begins a call.
func TestPhonePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/phone.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := &restOfCarrier{}
	carrier := httptest.NewServer(rest)
	defer carrier.Close()
	blocks := regexp.MustCompile("(?s)```yaml\n(phone:.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("docs/phone.md has %d blocks of settings", len(blocks))
	}
	file := filepath.Join(t.TempDir(), "voicegw.yaml")
	settings := blocks[0][1]
	for _, b := range blocks[1:] {
		settings += strings.TrimPrefix(b[1], "phone:\n")
	}
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--config", file, "--set", "phone.twilio.api="+carrier.URL, "--set", "api_key="+phonePageKey, "--set", "sim.use=always")
	call := callOf(t, r.addr, string(page), "", url.Values{"AccountSid": {"AC00000000000000000000000000000000"}, "CallSid": {"CA1"},
		"From": {"+15557654321"}, "To": {"+15550100"}})
	call.talk(t)
	request := regexp.MustCompile(`-d '(\{"to".*?\})'`).FindStringSubmatch(string(page))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+"/v1/phone/calls", strings.NewReader(request[1]))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+phonePageKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var begun phone.Begun
	if err := json.NewDecoder(resp.Body).Decode(&begun); err != nil || resp.StatusCode != http.StatusCreated || begun.CallID != "CA2" {
		t.Fatalf("%d %+v %v", resp.StatusCode, begun, err)
	}
	_, form, _ := strings.Cut(rest.last(), " ")
	values, err := url.ParseQuery(form)
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(values.Get("Url"), "?")
	callOf(t, r.addr, string(page), "?"+query, url.Values{"AccountSid": {"AC00000000000000000000000000000000"}, "CallSid": {"CA2"},
		"From": {values.Get("From")}, "To": {values.Get("To")}}).talk(t)
}

const phonePageKey = "an-operators-key-of-this-test"

// pageCall is the carrier's side of a call.
type pageCall struct {
	conn *ws.Conn
	id   string
}

// streamVerb is a stream in TwiML.
type streamVerb struct {
	URL        string `xml:"url,attr"`
	Parameters []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	} `xml:"Parameter"`
}

// carrierAnswer is the part of TwiML that the tests read.
type carrierAnswer struct {
	Say     []string
	Connect []struct{ Stream streamVerb }
}

const pageToken = "change-me"

// callOf sends a request to the page's webhook, and opens the stream of the answer.
func callOf(t *testing.T, addr, page, query string, form url.Values) pageCall {
	t.Helper()
	at := regexp.MustCompile(`https://voice\.example\.com/v1/phone/twilio/voice`).FindString(page) + query
	path := strings.TrimPrefix(at, "https://voice.example.com")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "voice.example.com"
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Twilio-Signature", phone.Sign(pageToken, at, form))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer carrierAnswer
	err = xml.NewDecoder(resp.Body).Decode(&answer)
	if err != nil || resp.StatusCode != http.StatusOK || len(answer.Say) != 1 || len(answer.Connect) != 1 {
		t.Fatalf("%d %+v, %v", resp.StatusCode, answer, err)
	}
	return openCall(t, addr, form.Get("CallSid"), answer.Connect[0].Stream)
}

// openCall opens a stream of a call at a gateway.
func openCall(t *testing.T, addr, id string, stream streamVerb) pageCall {
	t.Helper()
	conn, _, err := ws.Dial(t.Context(), "ws://"+addr+"/v1/phone/twilio", &websocket.DialOptions{Host: "voice.example.com",
		HTTPHeader: http.Header{"X-Twilio-Signature": {phone.Sign(pageToken, stream.URL, nil)}}}, ws.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	parameters := map[string]string{}
	for _, p := range stream.Parameters {
		parameters[p.Name] = p.Value
	}
	c := pageCall{conn, id}
	c.send(t, &phone.Message{Event: phone.EventStart, StreamSID: "MZ" + c.id, Start: &phone.Start{CallSID: c.id, StreamSID: "MZ" + c.id,
		CustomParameters: parameters, MediaFormat: phone.MediaFormat{Encoding: phone.EncodingULaw, SampleRate: 8000, Channels: 1}}})
	return c
}

func (c pageCall) send(t *testing.T, m *phone.Message) {
	t.Helper()
	text, err := phone.Encode(m)
	if err == nil {
		err = c.conn.Write(websocket.MessageText, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// talk speaks, waits until the agent answers, and hangs up.
func (c pageCall) talk(t *testing.T) {
	t.Helper()
	c.ask(t)
	c.send(t, &phone.Message{Event: phone.EventStop, StreamSID: "MZ" + c.id, Stop: &phone.Stop{CallSID: c.id}})
}

// listen sends silence, and confirms all audio at once, until the stream closes.
func (c pageCall) listen() {
	over := make(chan struct{})
	var silence sync.WaitGroup
	silence.Go(func() {
		frame := &phone.Message{Event: phone.EventMedia, StreamSID: "MZ" + c.id, Media: &phone.Media{Track: phone.TrackInbound,
			Payload: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xFF}, phone.FrameSamples))}}
		text, _ := phone.Encode(frame)
		clock := time.NewTicker(phone.FrameMS * time.Millisecond)
		defer clock.Stop()
		for {
			select {
			case <-clock.C:
				_ = c.conn.Write(websocket.MessageText, text) // the gateway may have closed it
			case <-over:
				return
			}
		}
	})
	defer silence.Wait()
	defer close(over)
	for {
		typ, data, err := c.conn.Read()
		if err != nil {
			return
		}
		if strings.Contains(string(data), `"event":"mark"`) {
			_ = c.conn.Write(typ, data)
		}
	}
}

// ask speaks, and waits until the agent answers.
func (c pageCall) ask(t *testing.T) {
	t.Helper()
	pcm := append(testutil.SpeechLike(8000, time.Second, 5), testutil.Silence(8000, 2*time.Second)...)
	for len(pcm) >= 320 { // the gateway accepts a few seconds at once
		c.send(t, &phone.Message{Event: phone.EventMedia, StreamSID: "MZ" + c.id, Media: &phone.Media{Track: phone.TrackInbound,
			Payload: base64.StdEncoding.EncodeToString(audio.AppendULaw(nil, pcm[:320]))}})
		pcm = pcm[320:]
	}
	for {
		_, data, err := c.conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		if m, err := phone.Parse(data); err != nil {
			t.Fatal(err)
		} else if m.Event == phone.EventMedia {
			break
		}
	}
}

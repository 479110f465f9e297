package main

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"voicegw/gateway/phone"
)

// TestNodesDrained: one of three gateways gets SIGTERM. All its sessions continue at the others, it exits, and no side
// effect happens twice.
func TestNodesDrained(t *testing.T) {
	t.Parallel()
	s := startSite(t, siteOptions{crowd: true})
	cr := startTalking(t, s, func(c *talker) { c.writes = toolLinger })
	leaving, ids := s.busiest()
	moved := cr.of(ids)
	drained := time.Now()
	s.gateways[leaving].signal(syscall.SIGTERM)
	if code := s.gateways[leaving].exits(); code != 0 {
		t.Errorf("the gateway ended with %d", code)
	}
	t.Logf("%d of %d sessions ran on the gateway that was drained; it took %v", len(moved), len(cr.talkers), time.Since(drained).Round(time.Millisecond))
	if went := cr.goOn(t, time.Now(), 2); went != len(cr.talkers) {
		t.Errorf("%d of %d continue", went, len(cr.talkers))
	}
	cr.hang()
	if n := cr.check(t); n != len(cr.talkers) {
		t.Errorf("%d of %d have no complaint", n, len(cr.talkers))
	}
	for _, c := range moved {
		if c.moves == 0 {
			t.Errorf("client %d did not get session.moving", c.n)
		}
	}
	if n := s.began(); n != len(cr.talkers) {
		t.Errorf("%d sessions have begun, for %d clients", n, len(cr.talkers))
	}
	s.close()
	if _, unaudited := s.world.once(t, s.audits()); unaudited > 0 {
		t.Errorf("%d side effects are in no audit", unaudited)
	}
	cr.figuresAfter(t, moved, drained)
}

// TestNodesPhoneCall: a gateway with a phone call is drained. The carrier opens another stream, at another gateway, which
// goes on with the session; after its end the same instructions open nothing.
func TestNodesPhoneCall(t *testing.T) {
	t.Parallel()
	carried := make(chan url.Values, 1)
	carrier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		carried <- r.PostForm
		_, _ = io.WriteString(w, `{"sid":"CA1"}`)
	}))
	defer carrier.Close()
	s := startSite(t, siteOptions{more: `
phone:
  public_url: https://voice.example.com
  twilio: {account_sid: AC1, auth_token: ` + pageToken + `, api: ` + carrier.URL + `}
`})
	call := callOf(t, s.gateways[0].addr, "https://voice.example.com/v1/phone/twilio/voice", "",
		url.Values{"AccountSid": {"AC1"}, "CallSid": {"CA1"}, "From": {"+15557654321"}, "To": {"+15550100"}})
	call.ask(t)
	var listens sync.WaitGroup
	listens.Go(call.listen)
	defer listens.Wait()
	s.gateways[0].signal(syscall.SIGTERM)
	var next carrierAnswer
	if err := xml.Unmarshal([]byte((<-carried).Get("Twiml")), &next); err != nil || len(next.Connect) == 0 {
		t.Fatalf("%+v, %v", next, err)
	}
	if code := s.gateways[0].exits(); code != 0 {
		t.Errorf("the gateway ended with %d", code)
	}
	moved := openCall(t, s.gateways[1].addr, "CA1", next.Connect[0].Stream)
	moved.ask(t)
	if taken := s.gateways[1].lines("a session was taken over"); len(taken) != 1 || taken[0]["given"] != true {
		t.Errorf("the other gateway has taken %v", taken)
	}
	moved.send(t, &phone.Message{Event: phone.EventStop, StreamSID: "MZCA1", Stop: &phone.Stop{CallSID: "CA1"}})
	s.gateways[1].logged("session ended")
	for _, n := range s.gateways[1:] {
		again := openCall(t, n.addr, "CA1", next.Connect[0].Stream)
		for {
			_, data, err := again.conn.Read()
			if err != nil {
				break
			}
			t.Errorf("a session that is over says %s", data)
		}
	}
	if len(carried) > 0 {
		t.Errorf("the carrier was asked for %v", <-carried)
	}
}

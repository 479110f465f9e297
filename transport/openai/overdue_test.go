package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// wireLog is the frames for a provider, with the seconds since the start.
type wireLog struct {
	start time.Time

	mu    sync.Mutex // guards the following field
	lines []string
}

func (l *wireLog) hear(frame []byte) {
	var m struct {
		Type     string `json:"type"`
		Event    string `json:"event_id"`
		ID       string `json:"response_id"`
		Response struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"response"`
	}
	_ = json.Unmarshal(frame, &m)
	line := fmt.Sprintf("%v %s", time.Since(l.start), m.Type)
	if m.Type == "response.create" {
		line += " " + m.Response.Metadata[labelKey]
	}
	if m.ID != "" {
		line += " " + m.ID
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// passes advances the bubble's time.
func passes(d time.Duration) { <-time.NewTimer(d).C }

func (l *wireLog) take() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// TestUnansweredRequest: the provider does not react to the first request. The next turn is requested anyway; the late
// first answer is cancelled and dropped; then the second turn is answered.
func TestUnansweredRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &wireLog{start: time.Now()}
		r := &rawProvider{pongAfter: 0, heard: wire.hear}
		conn := transport.Listen(connectRaw(t, r, transport.Provider{}))
		events := make(chan transport.Event, 32)
		reading := sync.WaitGroup{}
		reading.Go(func() {
			for {
				ev, err := conn.Recv(context.Background())
				if err != nil {
					return
				}
				if out, ok := ev.(*transport.AudioOut); ok {
					ev = &transport.AudioOut{Item: out.Item, PCM: append([]byte(nil), out.PCM...)}
				}
				events <- ev
			}
		})
		say := func(format string, args ...any) { r.frame(opText, fmt.Appendf(nil, format, args...)) }

		send(t, conn, transport.UserText{Text: "one"})
		passes(time.Second)
		send(t, conn, transport.UserText{Text: "two"})
		passes(10 * time.Second)
		if diff := cmp.Diff([]string{
			"0s conversation.item.create", "0s response.create create_1",
			"1s response.cancel", "1s conversation.item.create", "5s response.create create_2",
		}, wire.take()); diff != "" {
			t.Fatalf("the frames for the provider (-want +got):\n%s", diff)
		}

		say(`{"type":"response.created","response":{"id":"resp_1","metadata":{"voicegw_request":"create_1"}}}`)
		say(`{"type":"response.output_audio_transcript.delta","response_id":"resp_1","item_id":"item_1","content_index":0,"delta":"One."}`)
		say(`{"type":"response.output_audio.delta","event_id":"e1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAAA"}`)
		say(`{"type":"response.output_item.done","response_id":"resp_1","item":{"id":"item_2","type":"function_call","status":"completed","name":"f","call_id":"call_1","arguments":"{}"}}`)
		say(`{"type":"error","error":{"type":"invalid_request_error","code":"conversation_already_has_active_response","message":"","event_id":"create_2"}}`)
		if diff := cmp.Diff([]string{"11s response.cancel resp_1"}, wire.take()); diff != "" {
			t.Fatalf("the frames for the provider (-want +got):\n%s", diff)
		}
		say(`{"type":"response.done","response":{"id":"resp_1","status":"cancelled","status_details":"unimplemented"}}`)
		if diff := cmp.Diff([]string{"11s response.create create_3"}, wire.take()); diff != "" {
			t.Fatalf("the frames for the provider (-want +got):\n%s", diff)
		}
		if len(events) > 0 {
			t.Errorf("the answer to an abandoned request was reported: %#v", <-events)
		}

		say(`{"type":"response.created","response":{"id":"resp_3","status_details":"unimplemented","metadata":{"voicegw_request":"create_3"}}}`)
		say(`{"type":"response.output_audio.delta","event_id":"e2","response_id":"resp_3","item_id":"item_3","output_index":0,"content_index":0,"delta":"AAAA"}`)
		synctest.Wait()
		if ev := <-events; ev != (transport.ResponseStarted{ID: "resp_3"}) {
			t.Errorf("the second turn's answer begins with %#v", ev)
		}
		if out, ok := (<-events).(*transport.AudioOut); !ok || out.Item != "item_3" {
			t.Errorf("the second turn's answer sounds as %#v", out)
		}
		_ = conn.Close()
		reading.Wait()
	})
}

// TestACancelledResponseThatNeverEnds: the next turn's answer follows, and late events of the cancelled one are dropped.
func TestACancelledResponseThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &wireLog{start: time.Now()}
		r := &rawProvider{pongAfter: 0, heard: wire.hear}
		conn := transport.Listen(connectRaw(t, r, transport.Provider{}))
		say := func(format string, args ...any) {
			r.wg.Go(func() { r.frame(opText, fmt.Appendf(nil, format, args...)) })
			synctest.Wait()
		}
		say(`{"type":"response.created","response":{"id":"resp_1"}}`)
		if ev := recv(t, conn); ev != (transport.ResponseStarted{ID: "resp_1"}) {
			t.Fatalf("%#v", ev)
		}
		say(`{"type":"response.output_audio.delta","event_id":"e1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAAA"}`)
		recvAs[*transport.AudioOut](t, conn)
		send(t, conn, transport.UserText{Text: "two"})
		passes(cancelPatience)
		if diff := cmp.Diff([]string{
			"0s response.cancel resp_1", "0s conversation.item.create", "3s response.create create_1",
		}, wire.take()); diff != "" {
			t.Fatalf("the frames for the provider (-want +got):\n%s", diff)
		}
		say(`{"type":"response.created","response":{"id":"resp_2","metadata":{"voicegw_request":"create_1"}}}`)
		for _, want := range []transport.Event{
			transport.AudioDone{Item: "item_1"},
			transport.ResponseDone{ID: "resp_1", Status: transport.ResponseInterrupted},
			transport.ResponseStarted{ID: "resp_2"},
		} {
			if ev := recv(t, conn); ev != want {
				t.Fatalf("%#v, want %#v", ev, want)
			}
		}
		go func() {
			say(`{"type":"response.output_audio.delta","event_id":"e1","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"AAAA"}`)
			say(`{"type":"response.done","response":{"id":"resp_1","status":"cancelled"}}`)
			say(`{"type":"response.done","response":{"id":"resp_2","status":"completed"}}`)
		}()
		if ev := recv(t, conn); ev != (transport.ResponseDone{ID: "resp_2", Status: transport.ResponseCompleted}) {
			t.Errorf("%#v", ev)
		}
	})
}

package gateway

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/chat"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/transport/textmodel"
)

// asUseChat is the request of useChat's transport.
const asUseChat = `{"id":"Ab3","trigger":"submit-message","messages":[
	{"id":"1","role":"user","parts":[{"type":"text","text":"Hi"}]},
	{"id":"2","role":"assistant","metadata":{"conversation_id":"c"},"parts":[{"type":"step-start"},{"type":"dynamic-tool","toolName":"pay","toolCallId":"x","state":"output-available","input":{},"output":{}},{"type":"text","text":"Hello.","state":"done"},{"type":"data-voice_session_start","data":{}}]},
	{"id":"3","role":"user","parts":[{"type":"text","text":"Pay"},{"type":"text","text":"Bob"}]}]}`

// TestUIMessageStream: a turn as the AI SDK's UI message stream, part for part.
func TestUIMessageStream(t *testing.T) {
	do := answersWith(
		&protocol.TurnStarted{ConversationID: "conv-1"},
		&protocol.TextDelta{ItemID: "a", Text: "One "}, &protocol.TextDelta{ItemID: "a", Text: "moment."}, &protocol.TextDone{ItemID: "a", Text: "One moment."},
		&protocol.ToolStarted{CallID: "call_1", Tool: "pay"},
		&protocol.ConfirmationRequest{Token: "cf_1", Tool: "pay", Args: []byte(`{}`)},
		&protocol.ToolEnded{CallID: "call_1", Tool: "pay", Error: []byte(`{"type":"CONFIRMATION_REQUIRED","message":"x","confirmation_request":{"token":"cf_1"}}`)},
		&protocol.ToolStarted{CallID: "call_2", Tool: "look"}, &protocol.ToolEnded{CallID: "call_2", Tool: "look", OK: true, DurationMS: 7},
		&protocol.ToolStarted{CallID: "call_3", Tool: "look"}, &protocol.ToolEnded{CallID: "call_3", Tool: "look", Error: []byte(`{"type":"TRANSIENT","message":"Not now."}`)},
		&protocol.UIImage{ID: "i", URL: "/v1/images/x", Prompt: "A fox"},
		&protocol.TextDelta{ItemID: "b", Text: "Approve?"},
		&protocol.TurnUsage{Usage: protocol.Usage{InputTokens: 21, OutputTokens: 7}}, &protocol.Done{Status: protocol.DoneCompleted})
	varying := regexp.MustCompile(`msg_[A-Z2-7]{26}`)
	for path, change := range map[string]func(*http.Request){
		"/v1/chat?protocol=ui-message-stream": nil,
		"/v1/chat":                            header("Accept", "application/json, text/event-stream; protocol=ui-message-stream"),
	} {
		a := &fakeAgent{do: do}
		s, _ := chatServer(t, a, nil)
		w := send(s, path, asUseChat, change)
		var parts []string
		for line := range strings.Lines(w.Body.String()) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
				parts = append(parts, varying.ReplaceAllString(data, "msg"))
			}
		}
		want := []string{
			`{"messageId":"msg","messageMetadata":{"conversation_id":"conv-1"},"type":"start"}`,
			`{"id":"a","type":"text-start"}`, `{"delta":"One ","id":"a","type":"text-delta"}`, `{"delta":"moment.","id":"a","type":"text-delta"}`, `{"id":"a","type":"text-end"}`,
			`{"dynamic":true,"input":{},"providerExecuted":true,"toolCallId":"call_1","toolName":"pay","type":"tool-input-available"}`,
			`{"data":{"type":"confirmation.request","seq":6,"token":"cf_1","tool":"pay","args":{},"preview":"","expires_at":null},"id":"confirmation_request_6","type":"data-confirmation_request"}`,
			`{"dynamic":true,"output":{"error":"CONFIRMATION_REQUIRED","ok":false},"providerExecuted":true,"toolCallId":"call_1","type":"tool-output-available"}`,
			`{"dynamic":true,"input":{},"providerExecuted":true,"toolCallId":"call_2","toolName":"look","type":"tool-input-available"}`,
			`{"dynamic":true,"output":{"duration_ms":7,"ok":true},"providerExecuted":true,"toolCallId":"call_2","type":"tool-output-available"}`,
			`{"dynamic":true,"input":{},"providerExecuted":true,"toolCallId":"call_3","toolName":"look","type":"tool-input-available"}`,
			`{"dynamic":true,"errorText":"Not now.","providerExecuted":true,"toolCallId":"call_3","type":"tool-output-error"}`,
			`{"mediaType":"image/png","type":"file","url":"http://localhost:8080/v1/images/x"}`,
			`{"data":{"type":"ui.image","seq":12,"id":"i","url":"http://localhost:8080/v1/images/x","prompt":"A fox","width":0,"height":0,"expires_at":null},"id":"ui_image_12","type":"data-ui_image"}`,
			`{"id":"b","type":"text-start"}`, `{"delta":"Approve?","id":"b","type":"text-delta"}`, `{"id":"b","type":"text-end"}`,
			`{"finishReason":"stop","messageMetadata":{"usage":{"inputTokens":21,"outputTokens":7}},"type":"finish"}`, "[DONE]",
		}
		if diff := cmp.Diff(want, parts); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if w.Header().Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%v", w.Header())
		}
		asked := []chat.Request{{User: user.Must("192.0.2.7"), Message: "Pay\nBob", History: []textmodel.Message{{Role: textmodel.RoleUser, Text: "Hi"}, {Role: textmodel.RoleAssistant, Text: "Hello."}}}}
		if diff := cmp.Diff(asked, a.requests(), messages); diff != "" {
			t.Error(diff)
		}
	}
}

// TestUIMessageStreamFails: an error during a stream is a part of it, an invalid request gets a status, and a regenerated
// answer is a new message.
func TestUIMessageStreamFails(t *testing.T) {
	const path = "/v1/chat?protocol=ui-message-stream"
	s, _ := chatServer(t, &fakeAgent{do: answersWith(&protocol.TextDelta{ItemID: "a", Text: "One"}, &protocol.Error{Message: "It broke."}, &protocol.Done{Status: protocol.DoneFailed})}, nil)
	got := send(s, path, asUseChat, nil).Body.String()
	for _, piece := range []string{`"type":"start"`, `"type":"text-end"`, `{"errorText":"It broke.","type":"error"}`, `"finishReason":"error"`, "[DONE]"} {
		if _, got, _ = strings.Cut(got, piece); got == "" {
			t.Fatalf("%s is missing or out of order", piece)
		}
	}
	for body, says := range map[string]string{
		`{}`: "messages", `{"messages":[{"role":"user","parts":[{"type":"file","url":"x"}]}]}`: "messages[0].parts[0]", `{"message":"x"}`: "message",
		`{"trigger":"x","messages":[]}`: "trigger", `{"messages":[{"role":"tool","parts":[]}]}`: "messages[0]", `{"messages":[{"role":"user","parts":[7]}]}`: "",
	} {
		a := &fakeAgent{}
		s, _ := chatServer(t, a, nil)
		w := send(s, path, body, nil)
		if code, message := problemOf(t, w); w.Code != 400 || code != "invalid_message" || !strings.Contains(message, says) || len(a.requests()) > 0 {
			t.Errorf("%s: %d %s %q", body, w.Code, code, message)
		}
	}
	a := &fakeAgent{}
	s, _ = chatServer(t, a, nil)
	for range 2 {
		send(s, path, strings.Replace(asUseChat, "submit-message", "regenerate-message", 1), nil)
	}
	if asked := a.requests(); len(asked) != 2 || asked[0].ID == "" || asked[0].ID == asked[1].ID {
		t.Errorf("%+v", asked)
	}
}

// TestUIMessageStreamEnds: the reasons of an answer's end, and texts without text.done.
func TestUIMessageStreamEnds(t *testing.T) {
	for want, reply := range map[string][]protocol.ServerMessage{
		`"finishReason":"content-filter"`: {&protocol.TextDone{ItemID: "a", Refused: true}},
		`"finishReason":"length"`:         {&protocol.TextDone{ItemID: "a", Cut: true}},
		`"finishReason":"stop"`:           {&protocol.TextDone{ItemID: "a"}},
		`{"id":"a","type":"text-end"}` + "\n\ndata: " + `{"id":"b","type":"text-start"}`: {&protocol.TextDelta{ItemID: "b", Text: "Two"}},
	} {
		all := append([]protocol.ServerMessage{&protocol.TextDelta{ItemID: "a", Text: "One"}}, reply...)
		s, _ := chatServer(t, &fakeAgent{do: answersWith(append(all, &protocol.Done{Status: protocol.DoneCompleted})...)}, nil)
		if got := send(s, "/v1/chat?protocol=ui-message-stream", asUseChat, nil).Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}

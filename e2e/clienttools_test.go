package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/protocol"
)

const clientToolsScenario = `
name: client tools
rules:
  - when: {text: open}
    do:
      - call: {tool: open_page, args: {path: /prices}}
      - then: [say: "It is open."]
  - when: {utterance: any}
    do: [{say: I heard you.}]
`

// TestToolsOfTheClient: on each wire the model calls a client's tool, the client runs it, and the model continues with
// its answer. The audit names the client.
func TestToolsOfTheClient(t *testing.T) {
	t.Parallel()
	for _, provider := range providers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, provider, setting{speed: 50, firstAudioMS: 10, tools: newToolbox(t), scenario: clientToolsScenario})
			c := st.connect(t)
			c.say(&protocol.Start{InputRate: 16000, OutputRate: 24000, Tools: []protocol.ClientTool{{
				Name: "open_page", Description: "Opens a page of this site.",
				Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"new_tab":{"type":"boolean","default":false}},"required":["path"],"additionalProperties":false}`),
			}}})
			waitFor[*protocol.SessionStarted](c)
			c.say(&protocol.InputText{Text: "open the prices"})
			call := waitFor[*protocol.ToolCall](c)
			if call.Name != "open_page" || string(call.Args) != `{"new_tab":false,"path":"/prices"}` || call.TimeoutMS <= 0 {
				t.Errorf("the client is asked %+v with %s", call, call.Args)
			}
			c.say(&protocol.ToolResult{CallID: call.CallID, Result: json.RawMessage(`{"title":"Prices"}`)})
			if ended := waitFor[*protocol.ToolEnded](c); !ended.OK || ended.CallID != call.CallID || ended.Tool != "open_page" {
				t.Errorf("the call ended %+v", ended)
			}
			for {
				m := waitFor[*protocol.Transcript](c)
				if m.Role == "assistant" && strings.Contains(m.Text, "It is open.") {
					break
				}
			}
			record := st.audit.wait(t, "open_page", 1)[0]
			if record.Executor != "client" || !record.OK || !strings.Contains(string(record.Args), "/prices") {
				t.Errorf("the audit has %+v", record)
			}
		})
	}
}

package mcp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzEvents: the SDK gets only well-formed events that keep accepted, each with its message in one line.
func FuzzEvents(f *testing.F) {
	f.Add("event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\nnonsense\ndata:x\r\n\r\n: ping\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		e := &events{from: bufio.NewReader(strings.NewReader(text)), body: io.NopCloser(nil), keep: func(data []byte) []byte {
			if _, err := jsonrpc.DecodeMessage(data); err != nil {
				return nil
			}
			return data
		}}
		out, err := io.ReadAll(e)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.SplitSeq(out, []byte("\n")) {
			data, is := bytes.CutPrefix(line, []byte("data: "))
			if is {
				if _, err := jsonrpc.DecodeMessage(data); err != nil {
					t.Errorf("the data %q: %v", data, err)
				}
			} else if len(line) > 0 && !bytes.Contains(line, []byte(":")) {
				t.Errorf("the line %q", line)
			}
		}
	})
}

// FuzzLines: the SDK gets only messages.
func FuzzLines(f *testing.F) {
	f.Add("hello\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\n")
	f.Fuzz(func(t *testing.T, text string) {
		dropped := 0
		l := &lines{from: bufio.NewReaderSize(strings.NewReader(text), 16), pass: messages(func(string) { dropped++ })}
		out, err := io.ReadAll(l)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte("\n")), []byte("\n")) {
			if _, err := jsonrpc.DecodeMessage(line); len(out) > 0 && err != nil {
				t.Errorf("the line %q: %v", line, err)
			}
		}
	})
}

// TestUnreadableLines: a line that is too long or no message is skipped. If it answers a call, that call fails.
func TestUnreadableLines(t *testing.T) {
	message := `{"jsonrpc":"2.0","method":"x"}` + "\n"
	failed := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32051,"message":"the answer is not JSON-RPC","data":null}}`+"\n", id)
	}
	for line, want := range map[string]string{
		strings.Repeat("x", 3*maxEvent): "", `{"jsonrpc":"2.0","id":null,"error":{}}`: "", `{"jsonrpc":"2.0","id":"7","result":{}`: "",
		`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 3*maxEvent) + `"}`: failed(7),
		`{"jsonrpc":"2.0","id":8,"error":{"code":"x"}}`:                               failed(8), `{"id":9,"result":{}`: failed(9),
		`{"jsonrpc":"2.0","id":7,"result":{}} x`: failed(7),
	} {
		var why []string
		l := newLines(strings.NewReader(line+"\n"+message), messages(func(s string) { why = append(why, s) }))
		out, err := io.ReadAll(l)
		if err != nil || string(out) != want+message || len(why) != 1 {
			t.Errorf("%.60s: %q, %.200q, %v", line, out, why, err)
		}
	}
}

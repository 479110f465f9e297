package openai

import (
	"testing"

	"voicegw/transport"
)

// TestRefusedCommands: the error about a command that the user has not given and cannot repeat is of a kind hidden from
// clients, also from a server that repeats no event_id; the error about typed text, or about none of our commands, is
// shown.
func TestRefusedCommands(t *testing.T) {
	for name, c := range map[string]struct {
		err       errorValue
		truncates bool // a truncation waits for its answer
		shown     bool
	}{
		"a truncation":                  {errorValue{Type: "invalid_request_error", Code: "invalid_value", EventID: "truncate_2"}, true, false},
		"a truncation without a code":   {errorValue{Type: "invalid_request_error", EventID: "truncate_2"}, true, false},
		"a truncation, not named":       {errorValue{Type: "invalid_request_error", Code: "invalid_value"}, true, false},
		"a truncation, no code nor id":  {errorValue{Type: "invalid_request_error"}, true, false},
		"a truncation by its parameter": {errorValue{Type: "invalid_request_error", Code: "invalid_type", Param: "audio_end_ms"}, false, false},
		"a truncation by its code":      {errorValue{Type: "invalid_request_error", Code: "item_truncate_invalid_item_id"}, false, false},
		"a cancellation":                {errorValue{Type: "invalid_request_error", Code: "out_of_cheese", EventID: "cancel_1"}, false, false},
		"a clear":                       {errorValue{Type: "invalid_request_error", Code: "out_of_cheese", EventID: "buffer_1"}, false, false},
		"audio":                         {errorValue{Type: "invalid_request_error", Code: "input_audio_buffer_append_invalid"}, false, false},
		"a tool's result":               {errorValue{Type: "invalid_request_error", Code: "item_create_invalid", EventID: "result_7"}, false, false},
		"context of the page":           {errorValue{Type: "invalid_request_error", Code: "item_create_invalid", EventID: "added_7_1"}, false, false},
		"an update that is not awaited": {errorValue{Type: "invalid_request_error", Code: "out_of_cheese", EventID: "update_3"}, false, false},

		"typed text":                         {errorValue{Type: "invalid_request_error", Code: "item_create_invalid", EventID: "item_3"}, true, true},
		"an answer asked for":                {errorValue{Type: "server_error", Code: "server_error", EventID: "create_3"}, true, true},
		"no command of ours":                 {errorValue{Type: "server_error", Code: "server_error"}, true, true},
		"none, without a waiting truncation": {errorValue{Type: "invalid_request_error", Code: "invalid_value"}, false, true},
	} {
		c1 := bareConn(t)
		if c.truncates {
			c1.truncates.Add(1)
		}
		if (handler{c1}).onError(&event{Error: c.err}); c1.fatal != nil {
			t.Errorf("%s: the connection ends: %v", name, c1.fatal)
			continue
		}
		if pr, ok := c1.events.Next().(transport.Problem); !ok || (pr.Err.Kind != transport.KindIgnore) != c.shown {
			t.Errorf("%s: %+v, shown: want %t", name, pr, c.shown)
		}
		if left := c1.truncates.Load(); c.truncates && !c.shown && left != 0 {
			t.Errorf("%s: %d truncations still wait", name, left)
		}
	}
}

package calls

import (
	"testing"
	"time"

	"voicegw/registry/spec"
)

func TestBudgetOfAMode(t *testing.T) {
	voice := Budget{Retrieval: 2, Total: 3, TopK: 3, ToolTime: 1500 * time.Millisecond}
	text := Budget{Retrieval: 5, Total: 10, TopK: 10, ToolTime: -1}
	for _, c := range []struct {
		name string
		mode spec.Mode
		own  Budget
		want Budget
	}{
		{"voice", spec.ModeVoice, Budget{}, voice},
		{"text", spec.ModeText, Budget{}, text},
		{"some fields", spec.ModeVoice, Budget{Total: 7, ToolTime: -1}, Budget{Retrieval: 2, Total: 7, TopK: 3, ToolTime: -1}},
		{"all fields", spec.ModeText, Budget{1, 2, 3, time.Second}, Budget{1, 2, 3, time.Second}},
	} {
		b := NewBook(nil, &Policy{Mode: c.mode, Budget: c.own})
		if b.Budget() != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, b.Budget(), c.want)
		}
	}
}

func TestAccountJSON(t *testing.T) {
	for _, c := range []struct {
		account Account
		mode    spec.Mode
		want    string
		spent   bool
	}{
		{Account{}, spec.ModeVoice, `{"retrieval":{"used":0,"limit":2},"total":{"used":0,"limit":3},"tool_time_ms":{"used":0,"limit":1500}}`, false},
		{Account{1, 2, 1500 * time.Millisecond}, spec.ModeVoice, `{"retrieval":{"used":1,"limit":2},"total":{"used":2,"limit":3},"tool_time_ms":{"used":1500,"limit":1500}}`, false},
		{Account{1, 2, 1501 * time.Millisecond}, spec.ModeVoice, `{"retrieval":{"used":1,"limit":2},"total":{"used":2,"limit":3},"tool_time_ms":{"used":1501,"limit":1500}}`, true},
		{Account{2, 2, 0}, spec.ModeVoice, `{"retrieval":{"used":2,"limit":2},"total":{"used":2,"limit":3},"tool_time_ms":{"used":0,"limit":1500}}`, true},
		{Account{0, 3, 0}, spec.ModeVoice, `{"retrieval":{"used":0,"limit":2},"total":{"used":3,"limit":3},"tool_time_ms":{"used":0,"limit":1500}}`, true},
		{Account{4, 9, time.Hour}, spec.ModeText, `{"retrieval":{"used":4,"limit":5},"total":{"used":9,"limit":10}}`, false},
	} {
		b := DefaultBudget(c.mode)
		if got := string(c.account.Encode(b)); got != c.want {
			t.Errorf("%+v of %s is %s, want %s", c.account, c.mode, got, c.want)
		}
		if got := c.account.spent(b); got != c.spent {
			t.Errorf("%+v of %s is spent: %t, want %t", c.account, c.mode, got, c.spent)
		}
	}
}

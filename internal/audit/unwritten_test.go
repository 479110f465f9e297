package audit

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestUnwritten: records are held until they are written, and Wait waits for them, up to its limit.
func TestUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u Unwritten
		first, second := &Record{ToolCall: ToolCall{CallID: "call_1"}}, &Record{ToolCall: ToolCall{CallID: "call_2"}}
		if n := u.Add(first) + u.Add(second); n != 1+2 {
			t.Errorf("Add counted %d", n)
		}
		close(first.Written)
		if all := u.Records(); len(all) != 1 || all[0] != second {
			t.Errorf("held are %+v", all)
		}
		began := time.Now()
		if left := u.Wait(time.Second); left != 1 || time.Since(began) != time.Second {
			t.Errorf("%d are left after %s", left, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { close(second.Written) })
		if left := u.Wait(time.Minute); left != 0 || time.Since(began) != 2*time.Second {
			t.Errorf("%d are left after %s", left, time.Since(began))
		}
		if left := u.Wait(0); left != 0 {
			t.Errorf("%d are left at the end", left)
		}
	})
}

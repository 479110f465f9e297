package chat

import (
	"testing"

	"voicegw/protocol"
	"voicegw/transport"
)

// TestRetryableOfTroubles: the client's error agrees with the table of all codes.
func TestRetryableOfTroubles(t *testing.T) {
	all := []protocol.Error{*noAnswer(), *refused()}
	for _, k := range transport.Kinds() {
		if row := k.Failure(); row.Code != "" {
			all = append(all, protocol.Error{Code: row.Code, Retryable: row.Later})
		}
	}
	for _, told := range all {
		switch retry := protocol.RetryOf(told.Code); {
		case retry == 0, retry == protocol.RetryLater && !told.Retryable, retry == protocol.RetryNever && told.Retryable:
			t.Errorf("%s is retryable %t, but the table has %d", told.Code, told.Retryable, retry)
		}
	}
}

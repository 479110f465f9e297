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
	for _, sent := range all {
		switch retry := protocol.RetryOf(sent.Code); {
		case retry == 0, retry == protocol.RetryLater && !sent.Retryable, retry == protocol.RetryNever && sent.Retryable:
			t.Errorf("%s is retryable %t, but the table has %d", sent.Code, sent.Retryable, retry)
		}
	}
}

package chat

import (
	"testing"

	"voicegw/protocol"
	"voicegw/protocol/errcode"
)

// TestRetryableOfTroubles: what the client is told of a failure agrees with the table of all
// codes.
func TestRetryableOfTroubles(t *testing.T) {
	all := []protocol.Error{*noAnswer(), *refused()}
	for _, told := range troubles {
		all = append(all, told)
	}
	for _, told := range all {
		switch retry := errcode.RetryOf(told.Code); {
		case retry == 0, retry == errcode.Later && !told.Retryable, retry == errcode.Never && told.Retryable:
			t.Errorf("%s is retryable %t, and the table has %d", told.Code, told.Retryable, retry)
		}
	}
}

package session

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"
	"voicegw/transport"
)

// errorsIn returns the codes of the errors in a client's log.
func errorsIn(log []string) (codes []string) {
	for _, line := range log {
		if code, ok := strings.CutPrefix(line, "error "); ok {
			codes = append(codes, code)
		}
	}
	return codes
}

// onlyTheEnd fails if anything but session.ended follows the error that explains the end.
func (c *testClient) onlyTheEnd(t *testing.T, code string) {
	t.Helper()
	log := c.log()
	at := slices.Index(log, "error "+code)
	if want := []string{"error " + code, "session.ended " + code}; at < 0 || !slices.Equal(log[at:], want) {
		t.Errorf("the session ended with %q, want %q", log[max(at, 0):], want)
	}
}

// TestSlowErrorsEndASession: a client that keeps sending invalid messages, slower than a flood, gets only so many
// errors.
func TestSlowErrorsEndASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		for i := 0; i < 1000 && !c.isOver(); i++ {
			c.say([]string{`{"type":"hello"}`, `{"type":"confirmation.resolve","token":"cf_x","approved":true}`}[i%2])
			synctest.Wait()
			pass(600 * time.Millisecond)
		}
		pass(3 * time.Second)
		synctest.Wait()
		c.ended(t, protocol.CloseLimit)
		c.onlyTheEnd(t, protocol.CodeFlooding)
		codes := errorsIn(c.log())
		if len(codes) != sessionErrors+1 || !slices.Contains(codes, protocol.CodeUnknownType) || !slices.Contains(codes, protocol.CodeConfirmationUnknown) {
			t.Errorf("the client got %d errors", len(codes))
		}
	})
}

// TestNoErrorsAfterTheEnd: the client gets no error after session.ended.
func TestNoErrorsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, _ := st.started()
		s := st.only()
		s.end(causeFlood)
		for range 50 {
			s.clientError(protocol.CodeLimit, "", "Too many.")
			s.clientError(protocol.CodeAudioTooFast, "", "Too fast.")
		}
		pass(3 * time.Second)
		synctest.Wait()
		c.onlyTheEnd(t, protocol.CodeFlooding)
		if codes := errorsIn(c.log()); len(codes) != 1 {
			t.Errorf("the errors are %v", codes)
		}
	})
}

// TestErrorsOfTheModelAreBounded: a model that keeps reporting errors does not flood the client, and does not end the
// session.
func TestErrorsOfTheModelAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		problem := transport.Problem{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}}
		for range 100 {
			for range 10 {
				model.Emit(problem)
			}
			synctest.Wait()
			pass(100 * time.Millisecond)
		}
		if c.isOver() {
			t.Fatalf("the model's errors have ended the session: %q", c.log())
		}
		if n := len(errorsIn(c.log())); n < floodErrors || n > floodErrors+1 {
			t.Errorf("%d of 1000 errors within 10 s were sent", n)
		}
		pass(time.Minute)
		model.Emit(problem)
		synctest.Wait()
		if n := len(errorsIn(c.log())); n > floodErrors+2 {
			t.Errorf("%d errors were sent after a minute", n)
		}
		c.say(`{"type":"hello"}`) // the client's own errors are counted separately
		synctest.Wait()
		c.expect(t, "error unknown_type")
	})
}

// TestRetryableOfErrors: the errors of a running session have the table's retryable value, also `limit`.
func TestRetryableOfErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c, model := st.started()
		for range controlBurst + 1 {
			c.say(`{"type":"ping","t":1}`)
		}
		synctest.Wait()
		pass(time.Second)
		c.say(`{"type":"hello"}`)
		for range 30 {
			c.speak(make([]byte, 16_000))
		}
		model.Emit(transport.Problem{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRefused}},
			transport.Problem{Err: &transport.Error{Provider: "p", Op: "recv", Kind: transport.KindRetry}})
		synctest.Wait()
		got := map[string]bool{}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range c.texts {
			if m["type"] == "error" {
				got[fmt.Sprint(m["code"], " ", m["retryable"])] = true
			}
		}
		for _, want := range []string{"limit true", "audio_too_fast true", "unknown_type false", "provider_error false", "provider_unavailable true"} {
			if !got[want] {
				t.Errorf("no error is %s; there are %v", want, got)
			}
		}
		if len(got) != 5 {
			t.Errorf("the errors are %v", got)
		}
	})
}

// TestRetryableOfCauses: the error that ends a session has the table's retryable value; docs/protocol.md names the
// exceptions where the close code disagrees.
func TestRetryableOfCauses(t *testing.T) {
	except := map[string]bool{causeRefused.Reason: true, causeVoiceActive.Reason: true}
	for _, c := range causes {
		if c.Code == "" {
			continue
		}
		retry := protocol.RetryOf(c.Code)
		if retry == 0 || retry == protocol.RetryLater && !c.retryable() || retry == protocol.RetryNever && c.retryable() {
			t.Errorf("%s: retryable %t, but the table has %d for %s", c.Reason, c.retryable(), retry, c.Code)
		}
		again := c.Close == protocol.CloseServerLeaving || c.Close == protocol.CloseInternal || c.Close == protocol.CloseTryLater || c.Close >= 4000 && c.Close < 4500
		if again != c.retryable() && !except[c.Reason] {
			t.Errorf("%s: retryable %t, but the close code %d disagrees", c.Reason, c.retryable(), c.Close)
		}
	}
	if causeRefused.retryable() || !causeUnavailable.retryable() {
		t.Error("a refusal by the model is retryable")
	}
}

// TestEveryCodeIsInTheTable: a code without a row would not be documented.
func TestEveryCodeIsInTheTable(t *testing.T) {
	source, err := os.ReadFile("../protocol/closecode.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) != len(protocol.ErrorCodes) {
		t.Errorf("%d codes, and %d rows", len(codes), len(protocol.ErrorCodes))
	}
	for _, code := range codes {
		if protocol.RetryOf(code[1]) == 0 {
			t.Errorf("%s is missing in protocol.ErrorCodes", code[1])
		}
	}
}

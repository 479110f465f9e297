package completions

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"voicegw/internal/bounded"
	"voicegw/transport"
)

// problem is a provider's error: in OpenAI's form, a string, a list, or with a number or a word as code.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    string `json:"code"`
	Param   string `json:"param"`
}

// readProblem parses an error's JSON: the value of "error", or the object around it. ok is false if it has none.
func readProblem(raw []byte) (p problem, ok bool) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return p, false
		}
		raw = list[0]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return problem{Message: text}, text != ""
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return p, false
	}
	if inner := fields["error"]; len(inner) > 0 && string(inner) != "null" {
		return readProblem(inner)
	}
	word := func(names ...string) string {
		for _, name := range names {
			var s string
			var n json.Number
			if json.Unmarshal(fields[name], &s) == nil && s != "" {
				return s
			}
			if json.Unmarshal(fields[name], &n) == nil && n != "" {
				return n.String()
			}
		}
		return ""
	}
	p = problem{Message: word("message", "detail", "msg"), Type: word("type", "status"), Code: word("code"), Param: word("param")}
	return p, p != problem{}
}

func (p problem) normal() []byte {
	out, _ := json.Marshal(map[string]problem{"error": p}) // strings only: cannot fail
	return out
}

// tooLong matches the messages of servers that have no code for a conversation that is too long.
var tooLong = regexp.MustCompile(`(?i)maximum context length|context (length|window|size)|prompt is too long|too many (input ` +
	`)?tokens|input token count .*exceeds`)

// kind classifies a provider's error; status is the HTTP status, or 0 for an error in a stream.
func (p problem) kind(status int) transport.Kind {
	if n, err := strconv.Atoi(p.Code); err == nil && status < 300 && n >= 400 && n < 600 {
		status = n // in a stream the code may be an HTTP status
	}
	said := transport.KindOfCode(p.Code, p.Type)
	client := status < 300 || status >= 400 && status < 500
	switch {
	case said == transport.KindQuota || said == transport.KindTooLong || said == transport.KindFiltered:
		return said // more specific than a status
	case client && status != http.StatusTooManyRequests && tooLong.MatchString(p.Message):
		return transport.KindTooLong
	case status >= 300:
		return transport.KindOfStatus(status)
	case said != 0:
		return said
	default:
		return transport.KindRetry
	}
}

// retryAfter returns the wait that the provider asks for, or 0 if it is more than an hour, which no user would wait.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := bounded.RetryAfter(h, now); d <= time.Hour {
		return d
	}
	return 0
}

package httptool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"voicegw/internal/bounded"
	"voicegw/internal/webhook"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/document"
)

type needs struct{ Settings registry.AnySettings }

// Handler returns the tool's handler.
func (t *Tool) Handler() registry.Handler { return registry.Bind(t.execute) }

const attempts = 3

func (t *Tool) execute(ctx context.Context, call registry.Call[json.RawMessage, needs]) (registry.Result, error) {
	v, err := valuesOf(call)
	if err != nil {
		return registry.Result{}, err
	}
	for attempt := 1; ; attempt++ {
		a := t.attempt(ctx, call, v)
		if a.err == nil || attempt == attempts || !a.again || !wait(ctx, attempt, a.after) {
			return a.result, a.err
		}
	}
}

// wait waits before another attempt. It returns false if there is no time for it.
func wait(ctx context.Context, attempt int, asked time.Duration) bool {
	pause := max(asked, time.Duration(attempt*attempt)*100*time.Millisecond)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < 2*pause {
		return false
	}
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

func valuesOf(call registry.Call[json.RawMessage, needs]) (values, error) {
	v := values{settings: call.Needs.Settings.Values}
	decoded, problems, _ := document.Decode(call.Args, document.MaxArgsBytes, document.MaxArgsDepth)
	if len(problems) > 0 {
		return v, fmt.Errorf("the arguments cannot be read again: %s", problems[0])
	}
	v.args, _ = decoded.(map[string]any)
	s := call.Session
	v.session = map[string]any{"id": s.ID, "user": s.UserID, "vouched": s.Vouched, "conversation": s.ConversationID, "agent": s.Agent,
		"mode": string(s.Mode), "turn": s.Turn, "time_zone": s.TimeZone}
	return v, nil
}

// attempted is the outcome of one attempt. again means that another one may follow, after the time that the server asks
// for.
type attempted struct {
	result registry.Result
	err    error
	again  bool
	after  time.Duration
}

func (t *Tool) attempt(ctx context.Context, call registry.Call[json.RawMessage, needs], v values) attempted {
	req, err := t.request(ctx, call, v)
	if err != nil {
		return attempted{err: err}
	}
	resp, err := t.out.Do(req)
	if err != nil {
		return t.unanswered(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode/100 != 2 && err != nil: // the status says enough
		return t.refused(resp.StatusCode, nil, resp.Header, err)
	case resp.StatusCode/100 != 2:
		return t.refused(resp.StatusCode, data, resp.Header, nil)
	case err != nil:
		return t.unanswered(err)
	}
	result, err := t.answer(resp, data)
	return attempted{result: registry.Result{Data: result}, err: err}
}

// refused is the outcome of an answer with a status that is not a success.
func (t *Tool) refused(status int, data []byte, header http.Header, cause error) attempted {
	failed := registry.OfStatus(t.spec, status, messageOf(data), cause)
	return attempted{err: failed, again: failed.Retryable && t.spec.MayRepeat(), after: bounded.RetryAfter(header, time.Now())}
}

func (t *Tool) request(ctx context.Context, call registry.Call[json.RawMessage, needs], v values) (*http.Request, error) {
	address, ok, err := t.url.fill(v, segment)
	if err != nil || !ok {
		return nil, unfit("url", err)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("the URL of %s is not absolute with http or https", t.spec.ToolID) // it may hold a secret
	}
	query := url.Values{}
	if err := setPairs(query.Set, "query", t.query, v, plain); err != nil {
		return nil, err
	}
	u.RawQuery = query.Encode()
	payload, err := t.payload(call.Args, v)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, t.method, u.String(), bytes.NewReader(payload))
	if err != nil {
		return nil, bounded.Bare(err)
	}
	if err := setPairs(req.Header.Set, "headers", t.headers, v, line); err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "voicegw")
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if call.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", call.IdempotencyKey)
	}
	return req, t.signed(req, call, v, payload)
}

// setPairs sets the pairs that have a value.
func setPairs(set func(name, text string), part string, pairs []pair, v values, escape escape) error {
	for _, p := range pairs {
		text, ok, err := p.value.fill(v, escape)
		if err != nil {
			return unfit(part, err)
		}
		if ok {
			set(p.name, text)
		}
	}
	return nil
}

// signed signs the request as a webhook is signed. Its id is that of the operation, so that a receiver can recognise a
// repetition.
func (t *Tool) signed(req *http.Request, call registry.Call[json.RawMessage, needs], v values, payload []byte) error {
	if t.sign == "" {
		return nil
	}
	text, _ := v.get(placeholder{fromSettings, t.sign})
	secret, err := webhook.ParseSecret(textOf(text))
	if err != nil {
		return fmt.Errorf("tools.%s.%s %w", t.spec.ToolID, t.sign, err)
	}
	id := call.IdempotencyKey
	if id == "" {
		id = call.Session.ID + "-" + call.Session.Call
	}
	webhook.Sign(req.Header, id, time.Now(), payload, secret)
	return nil
}

func (t *Tool) payload(args json.RawMessage, v values) ([]byte, error) {
	if !t.bodied {
		return nil, nil
	}
	if t.body == nil {
		return args, nil
	}
	value, _ := v.filled(t.body)
	data, err := document.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("the body cannot be encoded: %w", err)
	}
	return data, nil
}

var (
	errMissing  = errors.New("has no value")
	errSegment  = errors.New("cannot be . or .. in a path")
	errControls = errors.New("has a control character")
)

// unfit is the error of arguments that do not fit into a part of the request.
func unfit(part string, err error) error {
	if err == nil {
		err = errMissing
	}
	return registry.Errorf(registry.ErrorValidation, "%s", prompts.UnfitRequest(part, err))
}

func plain(_ source, s string) (string, error) { return s, nil }

// segment escapes a value within the path, except a setting, which may hold the host. A server would remove "." and "..".
func segment(from source, s string) (string, error) {
	if from == fromSettings {
		return s, nil
	}
	if s == "." || s == ".." {
		return "", errSegment
	}
	return url.PathEscape(s), nil
}

func line(_ source, s string) (string, error) {
	if !httpguts.ValidHeaderFieldValue(s) {
		return "", errControls
	}
	return s, nil
}

// answer returns the data of a successful answer: JSON, or text.
func (t *Tool) answer(resp *http.Response, data []byte) (any, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	decoded, problems, ok := document.Decode(data, maxAnswer, document.MaxArgsDepth)
	var value any
	switch {
	case len(bytes.TrimSpace(data)) == 0:
	case ok && len(problems) == 0: // many services state another type
		value = document.Clean(decoded)
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		return nil, t.broken("is not JSON", nil)
	case !utf8.Valid(data):
		return nil, t.broken("is not text", nil)
	default:
		value = map[string]any{"text": document.CleanText(string(data))}
	}
	found, ok := document.At(value, t.data)
	if !ok {
		return nil, t.broken("has no "+t.data.String(), nil)
	}
	if encoded, err := document.Marshal(found); err != nil || len(encoded) > registry.MaxDataBytes {
		return nil, t.broken("is too large for a model; name a part of it with data", err)
	}
	return found, nil
}

// broken is the error of a successful answer that cannot be used. A tool that writes may have changed something.
func (t *Tool) broken(why string, cause error) *registry.ToolError {
	return registry.Answered(t.spec, registry.ErrorPermanent, true, cause, prompts.UnusableAnswer(t.spec.ToolID, why))
}

// maxSaid is the longest text of a service in an error, in characters.
const maxSaid = 500

// messageOf returns the text of a failed answer: a problem's detail (RFC 9457), an error's message, or the text itself.
func messageOf(data []byte) string {
	text := string(data)
	var said struct {
		Detail, Title, Message string
		Error                  json.RawMessage
	}
	if json.Unmarshal(data, &said) == nil {
		var inner struct{ Message string }
		var short string
		_, _ = json.Unmarshal(said.Error, &inner), json.Unmarshal(said.Error, &short) // at most one fits
		text = cmp.Or(said.Detail, said.Message, inner.Message, short, said.Title, text)
	}
	if !utf8.ValidString(text) || strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "" // a page or binary data says nothing to a model
	}
	return document.OneLine(text, maxSaid)
}

// unanswered is the outcome without a complete answer.
func (t *Tool) unanswered(err error) attempted {
	err = bounded.Bare(err)
	limit, over := bounded.As(err)
	switch {
	case errors.Is(err, bounded.ErrAddress):
		return attempted{err: registry.Answered(t.spec, registry.ErrorPermanent, false, err, prompts.ServiceForbidden(t.spec.ToolID))}
	case over && limit.Status >= http.StatusMultipleChoices: // compressed
		return t.refused(limit.Status, nil, nil, err)
	case over && !limit.Timeout():
		return attempted{err: t.broken("is too large, or compressed", err)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), over:
		return attempted{err: err} // the registry knows whether the tool's time is up
	}
	e := registry.Lost(t.spec, !bounded.Unsent(err), err, prompts.ServiceUnreachable(t.spec.ToolID))
	return attempted{err: e, again: e.Retryable}
}

package image

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"voicegw/internal/bounded"
)

// ProviderOptions configure an OpenAI or a Google.
type ProviderOptions struct {
	BaseURL string // the API's root: OpenAI's with its /v1, Google's without a path. Empty means the provider's.
	APIKey  string // Google requires one. OpenAI sends none if it is empty, for local servers.
	Model   string // the image model. Empty means DefaultOpenAIModel or DefaultGoogleModel.
	// HTTPClient sends the requests, within the bounds of docs/configuration.md. Nil means one over bounded.Shared.
	HTTPClient *http.Client
}

// api sends requests to a provider. Its own code instead of the provider's SDK keeps one copy of an answer in memory.
type api struct {
	base   string // without a slash at the end
	key    string
	header http.Header // has the key
	client *http.Client
}

// post sends a request once, because an image costs money, and decodes the answer into out. The error is an *Error, or
// that of ctx.
func (a *api) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return &Error{Kind: KindRequest, Err: err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, bytes.NewReader(body))
	if err != nil {
		return &Error{Kind: KindRequest, Err: bounded.Bare(err)}
	}
	r.Header = a.header.Clone()
	resp, err := a.client.Do(r)
	if err != nil {
		return a.unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return a.unanswered(ctx, err)
	}
	if resp.StatusCode/100 != 2 {
		return a.refusal(resp, data)
	}
	if err := json.Unmarshal(data, out); err != nil {
		kind := KindTransient // the answer may be incomplete
		if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
			kind = KindAnswer
		}
		return &Error{Kind: kind, Unsure: true, Err: fmt.Errorf("the answer is invalid: %w", err)}
	}
	return nil
}

// unanswered is the error of a request without a complete answer. It wraps ErrSize if the answer is too large.
func (a *api) unanswered(ctx context.Context, err error) error {
	unsent := bounded.Unsent(err)
	over, bound := bounded.As(err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && unsent:
		return &Error{Kind: KindTransient, Err: ctx.Err()}
	case ctx.Err() != nil:
		return ctx.Err()
	case !bound:
		return &Error{Kind: KindTransient, Unsure: !unsent, Err: fmt.Errorf("asking %s: %w", a.base, bounded.Bare(err))}
	case over.Bound == bounded.BoundFailure:
		return &Error{Kind: kindOf(over.Status), Status: over.Status, Err: over}
	case over.Passing():
		return &Error{Kind: KindTransient, Status: over.Status, Unsure: true, Err: over}
	case over.Most == 0: // a redirect, or an unsupported encoding
		return &Error{Kind: KindRequest, Status: over.Status, Err: over}
	default:
		return &Error{Kind: KindAnswer, Status: over.Status, Err: fmt.Errorf("%w: %w", ErrSize, over)}
	}
}

// kinds are the kinds of OpenAI's error codes that say more than the status: those of moderation and of the quota.
var kinds = map[string]Kind{
	"moderation_blocked": KindRefused, "content_policy_violation": KindRefused,
	"insufficient_quota": KindRateLimit, "billing_hard_limit_reached": KindRateLimit,
}

// refusal is the error of an unsuccessful answer.
func (a *api) refusal(resp *http.Response, data []byte) *Error {
	var body struct {
		Error struct {
			Message string
			Code    any                           // OpenAI's is a text, Google's the status
			Details []struct{ RetryDelay string } // google.rpc.RetryInfo
		}
	}
	_ = json.Unmarshal(data, &body) // a proxy's answer may be anything
	e := &Error{
		Kind: kindOf(resp.StatusCode), Status: resp.StatusCode, RetryAfter: bounded.RetryAfter(resp.Header, time.Now()),
		Reason: oneLine(body.Error.Message, a.key),
	}
	if code, ok := body.Error.Code.(string); ok && kinds[code] != "" {
		e.Kind = kinds[code]
	} else if strings.Contains(body.Error.Message, "API key not valid") { // Google's, with status 400
		e.Kind = KindAuth
	}
	for _, d := range body.Error.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
			e.RetryAfter = delay
		}
	}
	return e
}

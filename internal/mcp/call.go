package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"voicegw/internal/bounded"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

const (
	maxSaid = 500 // characters of a server's words in an error
	// The longest result, in bytes. A model that speaks needs less, and pays for each word.
	maxVoice = 8 << 10
	maxText  = 64 << 10
)

// KeyMeta is the key of a call's _meta that holds the idempotency key of the ledger.
const KeyMeta = "voicegw/idempotencyKey"

type needs struct{ Progress registry.Progress }

// Handler returns the tool's handler. Without a Client, its calls fail.
func (c *Client) Handler(t *Tool) registry.Handler {
	return registry.Bind(func(ctx context.Context, call registry.Call[json.RawMessage, needs]) (registry.Result, error) {
		return c.run(ctx, t, call)
	})
}

func (c *Client) run(ctx context.Context, t *Tool, call registry.Call[json.RawMessage, needs]) (registry.Result, error) {
	args, problems := t.args.Decode(call.Args)
	if len(problems) > 0 {
		words := prompts.InvalidArguments(t.Entry.ToolID, problems[0].String())
		return registry.Result{}, registry.Invalid(problems, "%s", words.Message)
	}
	s := c.server(t.Server)
	if s == nil {
		return registry.Result{}, t.unreachable(errEnded, false)
	}
	if call.Session.Vouched {
		ctx = context.WithValue(ctx, userKey{}, call.Session.UserID)
	}
	result, err := s.call(ctx, t, args, call)
	if err != nil {
		return registry.Result{}, err
	}
	return t.result(result, call.Session.Mode)
}

// call calls the tool on the server. It waits while the connection is being opened.
func (s *connection) call(ctx context.Context, t *Tool, args map[string]any,
	call registry.Call[json.RawMessage, needs]) (*sdk.CallToolResult, error) {
	params := &sdk.CallToolParams{Name: t.name, Arguments: args, Meta: sdk.Meta{}}
	if call.IdempotencyKey != "" {
		params.Meta[KeyMeta] = call.IdempotencyKey
	}
	token, over := s.progress(call.Needs.Progress)
	defer over()
	params.SetProgressToken(token)
	for again := true; ; again = false {
		now, err := s.ready(ctx)
		switch {
		case err != nil:
			return nil, err
		case now.err != nil:
			return nil, t.unreachable(now.err, false)
		case now.pins[t.name] != t.Pin:
			return nil, registry.Errorf(registry.ErrorNotFound, "%s", prompts.ChangedByServer(t.Entry.ToolID))
		}
		sent, unsent := bounded.Watch(ctx)
		result, err := now.session.CallTool(sent, params)
		if again && errors.Is(err, sdk.ErrSessionMissing) { // the server has started again and did not take the call
			_ = now.session.Close() // the server does not know it
			if now.replaced(ctx) == nil {
				continue
			}
		}
		if err != nil {
			return nil, t.failed(ctx, err, !unsent())
		}
		return result, nil
	}
}

// ready returns the state, after a connection that is being opened.
func (s *connection) ready(ctx context.Context) (state, error) {
	for {
		now := s.now()
		if now.session != nil || now.err != nil {
			return now, nil
		}
		if err := now.replaced(ctx); err != nil {
			return now, err
		}
	}
}

// replaced waits until the connection has another state.
func (now state) replaced(ctx context.Context) error {
	select {
	case <-now.changed:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's
	}
}

// progress registers a call for progress; over ends that.
func (s *connection) progress(p registry.Progress) (token string, over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token++
	token = strconv.Itoa(s.token)
	s.calls[token] = p
	return token, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, token)
	}
}

// unreachable is the error of a call without an answer. sent means that the server may have got it.
func (t *Tool) unreachable(err error, sent bool) error {
	return registry.Lost(&t.Entry.Spec, sent, err, prompts.ServiceUnreachable(t.Entry.ToolID))
}

// codeRejected is the SDK's for a request that its transport did not deliver.
const codeRejected = -32005

// failed is the error of a call that the server did not answer with a result.
func (t *Tool) failed(ctx context.Context, err error, sent bool) error {
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the registry knows whether the tool's time is up
	}
	rpc, is := errors.AsType[*jsonrpc.Error](err)
	if !is && undecodable(err) {
		return t.unreadable(err)
	}
	if !is || rpc.Code == codeRejected {
		return t.unreachable(bounded.Bare(err), sent)
	}
	said := prompts.ServerSays(t.Entry.ToolID, document.OneLine(rpc.Message, maxSaid))
	switch rpc.Code {
	case jsonrpc.CodeInvalidParams:
		return registry.Answered(&t.Entry.Spec, registry.ErrorValidation, false, err, said)
	case jsonrpc.CodeMethodNotFound:
		return registry.Answered(&t.Entry.Spec, registry.ErrorNotFound, false, err, said)
	case codeStatus:
		var of status
		_ = json.Unmarshal(rpc.Data, &of) // it is the guard's
		return registry.OfStatus(&t.Entry.Spec, of.Status, document.OneLine(of.Said, maxSaid), err)
	case codeUnreadable:
		return t.unreadable(err)
	}
	return registry.Answered(&t.Entry.Spec, registry.ErrorPermanent, true, err, said)
}

// undecodable reports whether an error is of a result that the SDK (v1.8.0) could not decode. For contents it has only texts.
func undecodable(err error) bool {
	_, form := errors.AsType[*json.UnmarshalTypeError](err)
	_, binary := errors.AsType[base64.CorruptInputError](err)
	text := err.Error()
	return form || binary || strings.Contains(text, "content type") || strings.HasSuffix(text, "nil content")
}

func (t *Tool) unreadable(err error) error {
	return registry.Answered(&t.Entry.Spec, registry.ErrorPermanent, true, err, prompts.UnusableAnswer(t.Entry.ToolID, "cannot be read"))
}

// result turns a server's result into data. It is marked with its source, because a server may write instructions there.
func (t *Tool) result(r *sdk.CallToolResult, mode spec.Mode) (registry.Result, error) {
	texts, left := textsOf(r.Content)
	text := document.CleanText(strings.Join(texts, "\n"))
	switch {
	case r.NeedsInput():
		return registry.Result{}, registry.Answered(&t.Entry.Spec, registry.ErrorPermanent, false, nil, prompts.InputNeeded(t.Entry.ToolID))
	case r.IsError:
		said := prompts.ServerSays(t.Entry.ToolID, document.OneLine(text, maxSaid))
		return registry.Result{}, registry.Answered(&t.Entry.Spec, registry.ErrorPermanent, true, nil, said)
	}
	data := map[string]any{"source": "mcp:" + t.Server}
	most := maxText
	if mode == spec.ModeVoice {
		most = maxVoice
	}
	if r.StructuredContent != nil {
		encoded, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return registry.Result{}, fmt.Errorf("the result cannot be encoded: %w", err)
		}
		v, problems, ok := document.Decode(encoded, maxAnswer, document.MaxSpecDepth)
		switch {
		case !ok || len(problems) > 0:
			return registry.Result{}, t.unreadable(nil)
		case len(encoded) <= most:
			data["result"] = document.Clean(v)
			return registry.Result{Data: data}, nil
		}
		text = document.CleanText(string(encoded)) // a part of it may still help
	}
	if len(text) > most {
		text, left = strings.ToValidUTF8(text[:most], ""), append(left, prompts.CutResult(most>>10))
	}
	data["text"] = text
	if len(left) > 0 {
		data["left_out"] = left
	}
	return registry.Result{Data: data}, nil
}

// textsOf returns the texts of a result, and the kinds of content that a model cannot get.
func textsOf(all []sdk.Content) (texts, left []string) {
	for _, c := range all {
		switch c := c.(type) {
		case *sdk.TextContent:
			texts = append(texts, c.Text)
		case *sdk.ResourceLink:
			texts = append(texts, strings.TrimSpace(c.Name+" "+c.URI))
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text != "" {
				texts = append(texts, c.Resource.Text)
			} else {
				left = append(left, "a file")
			}
		case *sdk.ImageContent:
			left = append(left, "an image")
		case *sdk.AudioContent:
			left = append(left, "audio")
		}
	}
	return texts, left
}

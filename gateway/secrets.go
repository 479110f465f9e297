package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"voicegw/gateway/realtime"
	"voicegw/internal/auth"
	"voicegw/internal/openaiwire"
	"voicegw/internal/quota"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
)

const (
	maxSecretSession  = 64 << 10 // bytes of the session of a client secret
	safetyIdentifier  = "OpenAI-Safety-Identifier"
	defaultModelAlias = "gpt-realtime"
	agentModel        = "agent:" // begins a model that is an agent
)

const (
	realtimePath    = "/v1/realtime"
	azurePrefix     = "/openai" // Azure has OpenAI's paths below it
	secretsPath     = realtimePath + "/client_secrets"
	betaSecretsPath = realtimePath + "/sessions"
	callsPath       = realtimePath + "/calls"
)

// isRealtime reports whether a path belongs to OpenAI's Realtime API.
func isRealtime(path string) bool {
	path = strings.TrimPrefix(path, azurePrefix)
	return path == realtimePath || path == "/realtime" || strings.HasPrefix(path, realtimePath+"/")
}

// secretBody is the field voicegw of a request for a client secret.
type secretBody struct {
	sessionBody
	// Tools is "locked" or "open": whether the client may declare its own. Without it, given tools are locked.
	Tools string `json:"tools"`
}

// makeClientSecret makes a client secret of OpenAI's Realtime API.
func (s realtimeAPI) makeClientSecret(w http.ResponseWriter, r *http.Request) *problem {
	if clientSecret(r.Context()) != nil {
		return refusal(http.StatusForbidden, "secret_not_allowed", "A client secret makes no others; use a key with the scope tickets.")
	}
	body, no := secretRequest(w, r)
	if no != nil {
		return no
	}
	ours := json.RawMessage("{}")
	q, wrong := openaiwire.ReadSecretRequest(body, "voicegw", openaiwire.Raw(&ours))
	if wrong != nil {
		return asProblem(wrong)
	}
	var more secretBody
	if no := takeBody(w, ours, nil, &more, true); no != nil {
		no.param = cmp.Or(no.param, "voicegw")
		return no
	}
	c, session, wrong := secretSession(q, &more)
	if wrong != nil {
		return asProblem(wrong)
	}
	in, no := s.secretInvitation(w, r, &more.sessionBody)
	if no != nil {
		return no
	}
	expires := time.Now().Add(q.Life)
	value, err := s.opts.Voice.MakeSecret(protocol.WithTraceParent(r.Context(), parentOf(r)), in, c, expires)
	if err != nil {
		return s.notInvited(err)
	}
	s.opts.Logger.Info("client secret made", "agent", in.Agent, "expires", expires.UTC(), "addr", s.clientAddr(r).String())
	session.ExpiresAt = expires.Unix()
	return answer(w, http.StatusOK, openaiwire.SecretAnswer{Value: value, ExpiresAt: expires.Unix(), Session: session})
}

// secretRequest reads the body; a client that wants nothing in particular sends none.
func secretRequest(w http.ResponseWriter, r *http.Request) ([]byte, *problem) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	if err == nil && len(bytes.TrimSpace(raw)) == 0 {
		return []byte("{}"), nil
	}
	if no := jsonOnly(r); no != nil {
		return nil, no
	}
	var body json.RawMessage
	return raw, takeBody(w, raw, err, &body, false)
}

// secretSession returns the settings that a client secret keeps, and the session as its client will see it.
func secretSession(q *openaiwire.SecretRequest, more *secretBody) (store.ClientSecret, *openaiwire.Session, *openaiwire.Error) {
	if more.Tools != "" && more.Tools != "locked" && more.Tools != "open" {
		return store.ClientSecret{}, nil, openaiwire.BadValue("voicegw.tools", more.Tools, "locked", "open")
	}
	c := store.ClientSecret{Model: q.Model}
	rules := &openaiwire.Rules{TypeOptional: true, AnyTranscription: true, SilenceMS: realtimeSilence, CheckTool: realtime.CheckTool}
	s := openaiwire.NewSession(openaiwire.RandomIDs().New("sess"), cmp.Or(c.Model, defaultModelAlias), rules, time.Time{})
	s, kept, wrong := q.Apply(s)
	if wrong != nil {
		return c, nil, wrong
	}
	if c.Session = kept; len(kept) > maxSecretSession {
		return c, nil, openaiwire.Invalid("invalid_value", "session", "Invalid 'session': it has %d bytes; at most %d are accepted.",
			len(kept), maxSecretSession)
	}
	_, told := q.Given["instructions"]
	_, prompted := q.Given["prompt"]
	_, declared := q.Given["tools"]
	if name, ok := strings.CutPrefix(c.Model, agentModel); ok {
		more.Agent = cmp.Or(more.Agent, name)
	}
	c.LockInstructions = told || prompted || more.Agent != ""
	c.LockTools = more.Tools == "locked" || declared && more.Tools != "open"
	return c, s, nil
}

// secretInvitation is for a named user, the user of OpenAI's header, or a new one.
func (s realtimeAPI) secretInvitation(w http.ResponseWriter, r *http.Request, body *sessionBody) (handoff.Invitation, *problem) {
	named := r.Header.Get(safetyIdentifier)
	if body.User == "" && auth.From(r.Context()).Names() && named != "" {
		if _, err := user.Parse(named); err != nil {
			return handoff.Invitation{}, invalid("The header " + safetyIdentifier + " " + err.Error() + ".")
		}
		body.User = named
	}
	return s.invited(w, r, body, user.Anonymous(netip.Addr{}, false))
}

func asProblem(e *openaiwire.Error) *problem {
	return &problem{status: e.Status, kind: e.Type, code: e.Code, param: e.Param, message: e.Message}
}

func noCalls(http.ResponseWriter, *http.Request) *problem {
	return refusal(http.StatusNotImplemented, "webrtc_not_available",
		"This gateway does not carry WebRTC. Connect a WebSocket to "+realtimePath+" instead; @openai/agents-realtime does so with "+
			"transport: 'websocket'.")
}

type clientSecretKey struct{}

// clientSecret returns the client secret that a request of OpenAI's Realtime API has shown; nil without one.
func clientSecret(ctx context.Context) *handoff.Secret {
	found, _ := ctx.Value(clientSecretKey{}).(*handoff.Secret)
	return found
}

// keyProtocol is the subprotocol with which browsers show a client secret.
const keyProtocol = "openai-insecure-api-key."

// realtimeKey returns the credentials of a client of OpenAI's Realtime API: in Authorization, in api-key (Azure), or in
// a subprotocol, where open is true.
func realtimeKey(h http.Header) (key string, open bool, err error) {
	bearer, azure := h.Values("Authorization"), h.Values("Api-Key")
	for _, key := range azure {
		bearer = append(slices.Clone(bearer), "Bearer "+key)
	}
	if len(bearer) > 0 {
		key, err = auth.ParseBearer(slices.Compact(bearer)) // some clients send both
		return key, false, err
	}
	offered, ok := protocol.OfferedSecret(h, keyProtocol)
	switch {
	case !ok:
		return "", false, auth.ErrAmbiguous
	case offered == "":
		return "", false, auth.ErrNoCredentials
	}
	return offered, true, nil
}

// realtimeCaller authenticates a client of OpenAI's Realtime API. Its client secret, if it has one, is found with
// clientSecret in the context.
func (s realtimeAPI) realtimeCaller(r *http.Request, a access) (auth.Principal, context.Context, *problem) {
	ctx := r.Context()
	key, open, err := realtimeKey(r.Header)
	if err == nil && strings.HasPrefix(key, store.SecretPrefix) {
		p, secret, no := s.bySecret(r, key)
		return p, context.WithValue(ctx, clientSecretKey{}, secret), no
	}
	if err == nil && open {
		// Subprotocols appear in logs.
		if _, wrong := s.check(r, s.callers.current.Get(), key); wrong == nil || !s.isFree(a) {
			return auth.Principal{}, ctx, &problem{status: http.StatusUnauthorized, code: "key_in_subprotocol",
				challenge: `, error="invalid_token"`, message: "A subprotocol is visible to others, so it may have a client secret only. " +
					"Let your server make one with POST " + secretsPath + "."}
		}
		err = auth.ErrNoCredentials
	}
	p, no := s.authenticated(r, a, key, err)
	return p, ctx, no
}

// bySecret returns the principal of a client secret: its user, who may speak.
func (s realtimeAPI) bySecret(r *http.Request, key string) (auth.Principal, *handoff.Secret, *problem) {
	if wait := s.callers.failures.Wait(quota.AddressKey(s.clientAddr(r))); wait > 0 {
		return auth.Principal{}, nil, s.tooManyFailures(wait)
	}
	if s.opts.Voice == nil {
		return auth.Principal{}, nil, s.failed(r, "secret")
	}
	secret, err := s.opts.Voice.Secret(r.Context(), key, pageOf(r))
	switch {
	case err == nil:
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrOrigin), errors.Is(err, store.ErrExpired):
		s.opts.Logger.Debug("client secret refused", "error", err)
		return auth.Principal{}, nil, s.failed(r, "secret")
	default:
		return auth.Principal{}, nil, s.storeFailed("looking up a client secret failed", err)
	}
	by, now := secret.Guarantor, time.Now()
	p := auth.Principal{Kind: auth.KindTicket, ID: by.ID, Mark: by.Mark, Expires: by.Expires, User: secret.User, Scopes: auth.ScopeVoice}
	if !s.callers.current.Get().Admits(p, now) || !by.Expires.IsZero() && !now.Before(by.Expires) {
		return auth.Principal{}, nil, s.failed(r, "revoked")
	}
	if no := s.shutOut(secret.User, "The user is temporarily blocked."); no != nil {
		return auth.Principal{}, nil, no
	}
	return p, secret, nil
}

// secretPaths are the routes that make client secrets.
var secretPaths = []string{secretsPath, azurePrefix + secretsPath, betaSecretsPath}

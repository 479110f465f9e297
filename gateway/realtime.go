package gateway

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"voicegw/gateway/realtime"
	"voicegw/internal/auth"
	"voicegw/internal/nonblock"
	"voicegw/internal/openaiwire"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/registry/spec"
	"voicegw/session"
)

// realtimePaths are the paths of OpenAI's Realtime protocol: OpenAI's, Azure's, and that of clients whose base URL has
// no version.
var realtimePaths = []string{realtimePath, azurePrefix + realtimePath, "/realtime"}

// realtimeLife is the lifetime of a session that its client sees, as OpenAI's.
const realtimeLife = time.Hour

// realtimeAPI serves clients of OpenAI's Realtime API.
type realtimeAPI struct{ *Server }

// realtime begins a session for a client of OpenAI's Realtime protocol.
func (s realtimeAPI) realtime(w http.ResponseWriter, r *http.Request) *problem {
	admission, no := s.admit(w, r, session.Coming{})
	if no != nil {
		return no
	}
	conn, err := realtime.Accept(w, r)
	if !s.upgrade(r, admission, err) {
		return nil
	}
	if secret := clientSecret(r.Context()); secret != nil {
		admission.Redeem = secret.Redeem
	}
	opts, refused := s.realtimeOptions(r)
	if refused != nil {
		admission.Release()
		realtime.Refuse(conn, refused)
		return nil
	}
	s.opts.Sessions.Start(admission, realtime.NewConn(conn, opts))
	return nil
}

// realtimeRefusal is the reason why OpenAI closes a connection at once, with 4000.
func realtimeRefusal(r *http.Request) *openaiwire.Error {
	q := r.URL.Query()
	switch {
	case strings.Contains(strings.ToLower(r.Header.Get("OpenAI-Beta")), "realtime=v1"),
		strings.Contains(r.Header.Get("Sec-Websocket-Protocol"), "openai-beta.realtime-v1"):
		return openaiwire.Invalid("beta_api_shape_disabled", "",
			"The Realtime Beta API is not supported. Please use /v1/realtime for the GA API.")
	case q.Has("intent"):
		return openaiwire.Invalid("invalid_intent", "intent",
			"The intent '%s' is not supported: this server transcribes conversations only. Connect with ?model= instead.", q.Get("intent"))
	case q.Has("call_id"):
		return openaiwire.Invalid("invalid_call_id", "call_id",
			"This server has no WebRTC calls to attach to. Connect with ?model= instead.")
	}
	return nil
}

// realtimeOptions translates the request of a client.
func (s realtimeAPI) realtimeOptions(r *http.Request) (realtime.Options, *openaiwire.Error) {
	if no := realtimeRefusal(r); no != nil {
		return realtime.Options{}, no
	}
	q, ids := r.URL.Query(), openaiwire.RandomIDs()
	asked, secret := cmp.Or(q.Get("model"), q.Get("deployment")), clientSecret(r.Context())
	if secret != nil {
		asked = cmp.Or(secret.Model, asked)
	}
	opts := realtime.Options{IDs: ids, CheckTools: s.checkClientTools, Tools: s.voiceTools(r)}
	provider, no := s.realtimeModel(asked, &opts)
	if no != nil {
		return realtime.Options{}, no
	}
	opts.Start.Client = realtimeClient(r)
	voice := provider.Voice
	if voice == "" && len(provider.Voices) > 0 {
		voice = provider.Voices[0]
	}
	rules := &openaiwire.Rules{Voice: voice, SilenceMS: realtimeSilence, AnyTranscription: true, TypeOptional: true,
		CheckTool: realtime.CheckTool, MapVoice: func(name string) string {
			if slices.Contains(provider.Voices, name) {
				return name
			}
			return voice // an error would end the sessions of some clients
		}, SameModel: func(name string) bool { // clients send the default of their own, whatever the request named
			return !strings.HasPrefix(name, agentModel) && (name == provider.Name ||
				!slices.ContainsFunc(s.opts.Sessions.Providers(), func(p session.Provider) bool { return p.Name == name }))
		}}
	opts.Session = openaiwire.NewSession(ids.New("sess"), cmp.Or(asked, provider.Model), rules, time.Now().Add(realtimeLife))
	if secret != nil {
		if len(secret.Session) > 0 {
			if opts.Session, no = opts.Session.Update(secret.Session); no != nil {
				return realtime.Options{}, no
			}
		}
		rules.LockInstructions, rules.LockTools = secret.LockInstructions, secret.LockTools
	}
	return opts, nil
}

// realtimeSilence is the default of server_vad with OpenAI's newest models, in ms.
const realtimeSilence = 500

// realtimeModel finds the provider and the agent that a client means with its model: a provider or the model of one,
// agent:NAME, or anything else for the default, because unmodified clients name a model of OpenAI.
func (s realtimeAPI) realtimeModel(name string, opts *realtime.Options) (session.Provider, *openaiwire.Error) {
	providers := s.opts.Sessions.Providers()
	if agent, ok := strings.CutPrefix(name, agentModel); ok {
		if opts.Start.Agent = agent; !s.opts.Sessions.HasAgent(agent) {
			return session.Provider{}, openaiwire.Invalid("model_not_found", "model",
				"The model `%s` does not exist: there is no such agent.", name)
		}
		return providers[0], nil
	}
	for _, p := range providers {
		if name != "" && (p.Name == name || p.Model == name) {
			opts.Start.Provider = p.Name
			return p, nil
		}
	}
	return providers[0], nil
}

// realtimeClient names the client: the end user of OpenAI's header, and its program.
func realtimeClient(r *http.Request) *protocol.ClientInfo {
	program, version, _ := strings.Cut(r.Header.Get("User-Agent"), "/")
	version, _, _ = strings.Cut(version, " ")
	c := &protocol.ClientInfo{Name: clip(program), Version: clip(version)}
	if id := r.Header.Get(safetyIdentifier); id != "" {
		if _, err := user.Parse(id); err == nil {
			c.ID = id
		}
	}
	return c
}

// checkClientTools is for [realtime.Options].
func (s realtimeAPI) checkClientTools(tools []protocol.ClientTool) (field, why string) {
	err := s.opts.Sessions.CheckTools(tools)
	if err == nil {
		return "", ""
	}
	if cause, ok := errors.AsType[*session.Cause](err); ok {
		return cause.Field, cause.Message
	}
	return "", err.Error()
}

// voiceTools are the gateway's tools that the caller may use by voice.
func (s realtimeAPI) voiceTools(r *http.Request) (list []protocol.ClientTool) {
	if s.opts.Tools == nil {
		return nil
	}
	for _, t := range s.toolsFor(r).Tools(spec.ModeVoice) {
		list = append(list, protocol.ClientTool{Name: t.ToolID, Description: t.Description, Schema: t.Forms.OpenAI})
	}
	return list
}

// admit admits a connection that will carry a session of the caller.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, coming session.Coming) (*session.Admission, *problem) {
	addr, late, over := s.clientAddr(r), s.lateness(r), s.overload()
	coming.Behind = late.Behind || over.Over()
	admission, err := s.opts.Sessions.Admit(addr, coming)
	switch {
	case errors.Is(err, session.ErrBehind):
		return nil, s.busy(addr, late, over)
	case err != nil:
		return nil, s.notAdmitted(addr, err)
	}
	p := auth.From(r.Context())
	// A ticket has its own limits.
	if p.May(auth.ScopeVoice) && !protocol.OffersTicket(r.Header) {
		if no := s.opts.Sessions.Refuses(p); no != nil {
			admission.Release()
			return nil, s.limited(w, r, no)
		}
	}
	admission.Origin, admission.Anonymous = pageOf(r), s.nameless(r)
	admission.Principal, admission.TicketNeeded, admission.Parent = p, !p.May(auth.ScopeVoice), parentOf(r)
	return admission, nil
}

// upgrade prepares the connection of a request after its handshake, whose error is err; false if that has failed.
func (s *Server) upgrade(r *http.Request, admission *session.Admission, err error) bool {
	if err != nil {
		admission.Release()
		s.seldom.Info("connection refused", "handshake", "addr", s.clientAddr(r).String(), "error", err)
		return false
	}
	client, _ := r.Context().Value(connKey{}).(net.Conn)
	if under := nonblock.Under(client); under != nil {
		limitSendBuffer(under)
	}
	upgraded(client)
	return true
}

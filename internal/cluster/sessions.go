package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"voicegw/session"
	"voicegw/store"
)

const (
	// sessionsPath is the path of a node's sessions for other nodes.
	sessionsPath = "/v1/peer/sessions/"
	// maxPrompt bounds a prompt with its tools in bytes, maxWhy a reason for refusing a switch.
	maxPrompt = 4 << 20
	maxWhy    = 1000
)

// askSession sends another node a signed request about one of its sessions; path is the rest of the path after the
// session ID. It returns the answer's body, or conflict's error for the body of a 409. Other errors wrap
// store.ErrUnknown (the node doesn't run the session), ErrUnreachable or ErrRefused.
func (p *Peers) askSession(ctx context.Context, client *http.Client, method string, node store.Node,
	conflict func(why []byte) error, session string, path ...string) ([]byte, error) {
	base, err := url.Parse(node.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: its address is not a URL", ErrUnreachable)
	}
	at := base.JoinPath(sessionsPath, url.PathEscape(session)).JoinPath(path...)
	r, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	p.signer.sign(r, time.Now())
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or says nothing
	want := http.StatusNoContent
	if method == http.MethodGet {
		want = http.StatusOK
	}
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%w: on the node that ran it", store.ErrUnknown)
	case answer.StatusCode != want && (answer.StatusCode != http.StatusConflict || conflict == nil):
		return nil, fmt.Errorf("%w: %s", ErrRefused, answer.Status)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if answer.StatusCode != want {
		return nil, conflict(body)
	}
	return body, nil
}

// Session implements gateway.Peers: it returns a session of another node, with the errors of askSession.
func (p *Peers) Session(ctx context.Context, node store.Node, id string) (session.Running, error) {
	body, err := p.askSession(ctx, p.prompts, http.MethodGet, node, nil, id)
	if err != nil {
		return session.Running{}, err
	}
	return parseRunning(body, id)
}

func parseRunning(body []byte, id string) (found session.Running, err error) {
	if err := json.Unmarshal(body, &found); err != nil {
		return session.Running{}, fmt.Errorf("%w: invalid session in its answer: %w", ErrRefused, err)
	}
	if found.ID != id {
		return session.Running{}, fmt.Errorf("%w: its answer is about another session", ErrRefused)
	}
	return found, nil
}

// Prompt implements gateway.Peers: it returns the prompt of a session of another node. The error is session.ErrNoModel
// or one of askSession.
func (p *Peers) Prompt(ctx context.Context, node store.Node, id string) (session.Prompt, error) {
	body, err := p.askSession(ctx, p.prompts, http.MethodGet, node, func([]byte) error { return session.ErrNoModel }, id, "prompt")
	if err != nil {
		return session.Prompt{}, err
	}
	return parsePrompt(body)
}

func parsePrompt(body []byte) (found session.Prompt, err error) {
	if err := json.Unmarshal(body, &found); err != nil {
		return session.Prompt{}, fmt.Errorf("%w: invalid prompt in its answer: %w", ErrRefused, err)
	}
	return found, nil
}

// EndSession implements gateway.Peers: it ends a session of another node, with the errors of askSession.
func (p *Peers) EndSession(ctx context.Context, node store.Node, session string) error {
	_, err := p.askSession(ctx, p.client, http.MethodDelete, node, nil, session)
	return err
}

// SwitchAgent implements gateway.Peers: it hands a session of another node to another agent. The error wraps
// session.ErrAgent or is one of askSession.
func (p *Peers) SwitchAgent(ctx context.Context, node store.Node, id, agent, reason string) error {
	cannot := func(why []byte) error {
		return fmt.Errorf("%w: %s", session.ErrAgent, bytes.TrimSpace(why[:min(len(why), maxWhy)]))
	}
	_, err := p.askSession(ctx, p.client, http.MethodPut, node, cannot, id, "agent", wanted{agent, reason}.encode())
	return err
}

// wanted is the requested agent and the reason. It is part of the path, because the path is signed.
type wanted struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

func (w wanted) encode() string {
	raw, _ := json.Marshal(w) // cannot fail: two strings
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseWanted(text string) (w wanted, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &w)
	}
	return w, err
}

func (p *Peers) serveSessions(mux *http.ServeMux) {
	for pattern, serve := range map[string]func(r *http.Request) (any, error){
		"GET " + sessionsPath + "{id}": func(r *http.Request) (any, error) {
			if p.opts.Session != nil {
				if found, ok := p.opts.Session(r.PathValue("id")); ok {
					return found, nil
				}
			}
			return nil, session.ErrNotHere
		},
		"GET " + sessionsPath + "{id}/prompt": func(r *http.Request) (any, error) {
			if p.opts.Prompt == nil {
				return nil, session.ErrNotHere
			}
			return p.opts.Prompt(r.PathValue("id"))
		},
		"DELETE " + sessionsPath + "{id}": func(r *http.Request) (any, error) {
			if p.opts.End == nil || !p.opts.End(r.PathValue("id")) {
				return nil, session.ErrNotHere
			}
			return nil, nil
		},
		"PUT " + sessionsPath + "{id}/agent/{what}": func(r *http.Request) (any, error) {
			to, err := parseWanted(r.PathValue("what"))
			switch {
			case err != nil:
				return nil, errNoAgent
			case p.opts.Switch == nil:
				return nil, session.ErrNotHere
			}
			return nil, p.opts.Switch(r.PathValue("id"), to.Agent, to.Reason)
		},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			found, err := serve(r)
			answer(w, found, err)
		})
	}
}

var errNoAgent = errors.New("the request names no agent")

func answer(w http.ResponseWriter, found any, err error) {
	switch {
	case errors.Is(err, errNoAgent):
		http.Error(w, "The request names no agent.", http.StatusBadRequest)
	case errors.Is(err, session.ErrNoModel):
		http.Error(w, "The session has no model.", http.StatusConflict)
	case errors.Is(err, session.ErrAgent):
		http.Error(w, session.WhyNot(err), http.StatusConflict)
	case err != nil:
		http.Error(w, "This node does not run the session.", http.StatusNotFound)
	case found == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found) // the other node may have disconnected
	}
}

// Check sends a request to this node at its advertised address and then to the others. It returns the problems, each
// with the setting to check; nil if all answer with the same secret. It skips others without an address.
func (p *Peers) Check(ctx context.Context, self store.Node, others []store.Node) (wrong []error) {
	if err := p.answers(ctx, self); errors.Is(err, ErrRefused) {
		wrong = append(wrong, fmt.Errorf("cluster.url %s reaches another program, or a gateway with a different cluster.secret: %w",
			self.URL, err))
	} else if err != nil {
		wrong = append(wrong,
			fmt.Errorf("cluster.url %s does not reach this gateway's cluster.listen, so other gateways cannot relay clients to it: %w",
				self.URL, err))
	}
	for _, n := range others {
		if n.URL == "" || n.ID == self.ID {
			continue
		}
		if err := p.answers(ctx, n); errors.Is(err, ErrRefused) {
			wrong = append(wrong,
				fmt.Errorf("the gateway %s at %s refuses this one: set the same cluster.secret on both, and synchronise their clocks: %w",
					n.ID, n.URL, err))
		} else if err != nil {
			wrong = append(wrong, fmt.Errorf(
				"the gateway %s cannot be reached at %s: check its cluster.url and the network: %w", n.ID, n.URL, err))
		}
	}
	return wrong
}

const noSuchSession = "none"

func (p *Peers) answers(ctx context.Context, n store.Node) error {
	if _, err := p.Session(ctx, n, noSuchSession); !errors.Is(err, store.ErrUnknown) {
		return err
	}
	return nil
}

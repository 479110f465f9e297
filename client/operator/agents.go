package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"voicegw/internal/textutil"
	"voicegw/protocol"
)

// Agents is the response of GET /v1/agents.
type Agents struct {
	// Version covers all documents together.
	Version string `json:"version"`
	// Default is the agent for clients that name none.
	Default string  `json:"default"`
	Agents  []Agent `json:"agents"`
}

// Agent is an agent of a gateway.
type Agent struct {
	protocol.Agent
	// Document is missing in the list.
	Document json.RawMessage `json:"document,omitempty"`

	tag string // from the response
}

// Agents lists the agents.
func (o *Client) Agents(ctx context.Context) (Agents, error) {
	return get[Agents](ctx, o, "/v1/agents")
}

// Table formats the agents for the width of a file.
func (l Agents) Table(file any) string {
	rows := [][]string{{"ID", "NAME", "FROM", "VERSION", "EDITED", "NOTE"}}
	for _, a := range l.Agents {
		var notes []string
		if a.ID == l.Default {
			notes = append(notes, "default")
		}
		if !a.Enabled {
			notes = append(notes, "off")
		}
		if len(a.Problems) > 0 {
			notes = append(notes, textutil.Count(len(a.Problems), "problem"))
		}
		edited := ""
		if !a.UpdatedAt.IsZero() {
			edited = a.UpdatedAt.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{textutil.Quote(a.ID), textutil.Quote(a.Name), textutil.Quote(a.Source),
			orDash(a.Version), orDash(edited), orDash(strings.Join(notes, ", "))})
	}
	return textutil.Table(file, rows)
}

// Agent returns one agent with its document. For an unknown id, the error is a *Refused with the code unknown_agent.
func (o *Client) Agent(ctx context.Context, id string) (Agent, error) {
	var a Agent
	err := o.exchange(ctx, request{method: http.MethodGet, path: agentPath(id)}, &a, func(h http.Header) { a.tag = h.Get("ETag") })
	return a, err
}

func agentPath(id string) string { return "/v1/agents/" + segment(id) }

// InvalidAgent is a gateway's refusal of a document, with all its problems.
type InvalidAgent struct {
	File     string
	Problems []struct {
		Line    int    `json:"line"`
		Message string `json:"message"`
	}
}

// Error lists the problems, one per line, as file:line: text.
func (e *InvalidAgent) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": " + textutil.Quote(p.Message))
	}
	return b.String()
}

// ApplyAgent creates or changes an agent from a YAML document; file names it in errors, and created reports a new
// agent. A concurrent change is an error. For an invalid document, the error is an *InvalidAgent.
func (o *Client) ApplyAgent(ctx context.Context, file, id string, document []byte) (a Agent, created bool, err error) {
	put := request{method: http.MethodPut, path: agentPath(id), body: strings.NewReader(string(document)),
		header: http.Header{"Content-Type": {"application/yaml"}}}
	was, err := o.Agent(ctx, id)
	var refused *Refused
	switch {
	case err == nil:
		put.header.Set("If-Match", was.tag)
	case errors.As(err, &refused) && refused.Code == "unknown_agent":
		put.header.Set("If-None-Match", "*")
		created = true
	default:
		return Agent{}, false, err
	}
	err = o.exchange(ctx, put, &a, nil)
	if errors.As(err, &refused) && refused.Code == "agent_invalid" {
		wrong := &InvalidAgent{File: file}
		if json.Unmarshal(refused.problems, &wrong.Problems) == nil && len(wrong.Problems) > 0 {
			return Agent{}, false, wrong
		}
	}
	return a, created, err
}

// DeleteAgent deletes an agent's edit.
func (o *Client) DeleteAgent(ctx context.Context, id string) error {
	was, err := o.Agent(ctx, id)
	if err != nil {
		return err
	}
	return o.exchange(ctx, request{method: http.MethodDelete, path: agentPath(id), header: http.Header{"If-Match": {was.tag}}}, nil, nil)
}

// request is a request to a gateway. A body without a Content-Type is JSON.
type request struct {
	method, path string
	header       http.Header
	body         io.Reader
}

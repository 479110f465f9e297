// Package httptool runs tools that are HTTP requests: handler.yaml describes the request and the answer, as in
// docs/http-tools.md. The tool's schema.json decides about everything else: arguments, timeout, confirmation, idempotency.
package httptool

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"voicegw/internal/bounded"
	"voicegw/internal/strict"
	"voicegw/internal/webhook"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// FileName is the name of the file in a tool's directory.
const FileName = "handler.yaml"

// Tool is a tool that is an HTTP request. It may be used concurrently.
type Tool struct {
	// Fixed after Parse.
	spec    *spec.Spec
	method  string
	url     template // scheme, host and path
	query   []pair
	headers []pair
	bodied  bool
	body    any // a template; nil for the arguments
	sign    string
	data    document.Pointer
	out     *bounded.Outbound
}

type pair struct {
	name  string
	value template
}

type reader struct {
	*strict.Reader
	args, settings []string
	declared       *spec.Spec
}

const (
	maxAnswer   = 1 << 20
	maxElements = 20_000
	connections = 64 // to a tool's host
)

// Parse reads handler.yaml for a tool. name is the file's, for problems. The error is a *strict.Error.
func Parse(name string, text []byte, declared *spec.Spec) (*Tool, error) {
	var parameters struct{ Properties map[string]json.RawMessage }
	_ = json.Unmarshal(declared.Parameters, &parameters) // the registry has checked them
	r := &reader{Reader: strict.NewReader(name), declared: declared, args: slices.Sorted(maps.Keys(parameters.Properties)),
		settings: slices.Sorted(maps.Keys(declared.Settings))}
	t := &Tool{spec: declared}
	if top := r.Document(text); top != nil {
		r.tool(top, t)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *reader) tool(top *yaml.Node, t *Tool) {
	m, ok := r.Map(top, FileName, "method", "url", "query", "headers", "body", "sign", "data", "private")
	if !ok {
		return
	}
	t.method = http.MethodPost
	if n := m.Get("method"); n != nil {
		t.method, _ = r.Word(n, "method", http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	if n := m.Get("url"); n == nil {
		r.Problem(top, "url is missing")
	} else {
		t.url = r.address(n)
	}
	t.query = r.pairs(m.Get("query"), "query")
	t.headers = r.pairs(m.Get("headers"), "headers")
	for _, h := range t.headers {
		if n := m.Get("headers"); !httpguts.ValidHeaderFieldName(h.name) || slices.Contains(ownHeaders, http.CanonicalHeaderKey(h.name)) {
			r.Problem(n, "headers cannot have %q: the gateway sets it, or it is not a header's name", h.name)
		}
	}
	if t.method == http.MethodGet && !t.spec.MayRepeat() {
		r.Problem(top, "a tool that writes and is not idempotent cannot use GET, which HTTP clients may send again")
	}
	sends := t.method != http.MethodGet && t.method != http.MethodDelete
	switch n := m.Get("body"); {
	case n == nil:
		t.bodied = sends
	case !sends:
		r.Problem(n, "a %s request has no body; put the arguments into url or query", t.method)
	case n.Tag != "!!null":
		t.bodied, t.body = true, r.body(n, "body")
	}
	if n := m.Get("sign"); n != nil {
		t.sign, _ = r.Text(n, "sign")
		if setting, ok := r.declared.Settings[t.sign]; !ok || !setting.Secret {
			r.Problem(n, "sign must name a setting that schema.json declares with \"secret\": true, not %q", t.sign)
		}
	}
	if n := m.Get("data"); n != nil {
		text, _ := r.Text(n, "data")
		if t.data, ok = document.ParsePointer(text); !ok {
			r.Problem(n, "data is a JSON Pointer, such as /order, not %q", text)
		}
	}
	private, _ := r.Bool(m.Get("private"), "private")
	if r.declared.Job != nil {
		r.Problem(top, "schema.json declares a job, and only a handler in Go can have one; remove it")
	}
	t.out = bounded.NewOutbound(private, connections,
		bounded.Limits{Service: t.spec.ToolID, Format: bounded.JSON, Bytes: maxAnswer, Elements: maxElements})
}

// ownHeaders are set by the gateway.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Idempotency-Key", "User-Agent",
	"Accept-Encoding", http.CanonicalHeaderKey(webhook.HeaderID), http.CanonicalHeaderKey(webhook.HeaderTimestamp),
	http.CanonicalHeaderKey(webhook.HeaderSignature)}

// address reads the URL. Only settings may choose its host, so no model can.
func (r *reader) address(n *yaml.Node) template {
	t := r.template(n, "url")
	const hole = "\x00"
	whole := strings.Join(t.texts, hole)
	scheme, host, found := strings.Cut(whole, "://")
	if !found || strings.Contains(scheme, hole) {
		host = whole
	}
	if at := strings.IndexAny(host, "/?#"); at >= 0 {
		host = host[:at]
	}
	inHost := min(strings.Count(host, hole), len(t.holes))
	if slices.ContainsFunc(t.holes[:inHost], func(p placeholder) bool { return p.from != fromSettings }) {
		r.Problem(n, "the host of url may come from settings only; begin it with https://host/ or {settings.base_url}/")
	}
	if strings.ContainsAny(whole, "?#") {
		r.Problem(n, "url has a query or a fragment; write the query's parameters below query")
	}
	if len(t.holes) == 0 || t.texts[0] != "" {
		if u, err := url.Parse(strings.Join(t.texts, "x")); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			r.Problem(n, "url must be absolute and begin with https:// or http://")
		}
	}
	return t
}

func (r *reader) pairs(n *yaml.Node, what string) []pair {
	if n == nil {
		return nil
	}
	m, _ := r.Map(n, what)
	var all []pair
	for _, name := range m.Keys() {
		all = append(all, pair{name, r.template(m.Get(name), what+"."+name)})
	}
	return all
}

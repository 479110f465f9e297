package certs

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// answered is the part of the authority's answer that may refuse a name: an order (RFC 8555, section 7.1.3), or an
// authorization (section 7.1.4) whose challenges have their own errors.
type answered struct {
	Identifier  identifier   `json:"identifier"`
	Identifiers []identifier `json:"identifiers"`
	Error       *refusal     `json:"error"`
	Challenges  []struct {
		Type  string   `json:"type"`
		Error *refusal `json:"error"`
	} `json:"challenges"`
}

type identifier struct {
	Value string `json:"value"`
}

// refusal is a problem document (RFC 7807, section 3.1).
type refusal struct {
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

func (r refusal) String() string {
	return strings.TrimPrefix(r.Type, "urn:ietf:params:acme:error:") + ": " + r.Detail
}

// reasonIn returns the host that an answer refuses and the reason; both empty without a refusal.
func reasonIn(body []byte) (host, why string) {
	var a answered
	if json.Unmarshal(body, &a) != nil {
		return "", ""
	}
	host = a.Identifier.Value
	if host == "" && len(a.Identifiers) > 0 {
		host = a.Identifiers[0].Value
	}
	var reasons []string
	if a.Error != nil {
		reasons = append(reasons, a.Error.String())
	}
	for _, c := range a.Challenges {
		if c.Error != nil {
			reasons = append(reasons, c.Type+": "+c.Error.String())
		}
	}
	if host == "" || len(reasons) == 0 {
		return "", ""
	}
	return normal(host), strings.Join(reasons, "; ")
}

// listen records why the authority refuses a host. autocert discards the reason: it tries the next challenge, and its
// error is only that no challenge is left.
func (m *manager) listen(resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	body, err := io.ReadAll(resp.Body) // already bounded
	if err := resp.Body.Close(); err != nil {
		return err //nolint:wrapcheck // an error of the transport
	}
	if err != nil {
		return err //nolint:wrapcheck // an error of the transport
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if host, why := reasonIn(body); why != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reasons[host] = why
	}
	return nil
}

// reason returns the authority's refusal since the last call, or "".
func (m *manager) reason(host string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := m.reasons[host]
	delete(m.reasons, host)
	return why
}

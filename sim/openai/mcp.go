package openai

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Tools of a remote MCP server: the session lists the server's tools to the client
// (https://developers.openai.com/api/docs/guides/realtime-mcp, read 2026-11-23; the order of the events follows the
// page, because no session is recorded). The simulator makes up the list and connects to no server.

// mcpServer is the part of a declared MCP server that the simulator uses.
type mcpServer struct {
	label string
	// allowed are the names of allowed_tools; nil if all are allowed.
	allowed []string
	// unreachable: the server's host is in .invalid, which never resolves (RFC 2606,
	// section 2). A test can make the listing fail in this way.
	unreachable bool
}

// ordinaryMCPTools are listed for a server whose declaration names no tools: the
// two that OpenAI's documentation requires of a server for its own products.
var ordinaryMCPTools = []string{"search", "fetch"}

// tools returns the server's list.
func (s *mcpServer) tools() []object {
	names := ordinaryMCPTools
	if s.allowed != nil {
		names = s.allowed
	}
	out := []object{}
	for _, n := range names {
		out = append(out, object{"name", n, "description", nil, "input_schema", object{"type", "object", "properties", object{}}, "annotations", nil})
	}
	return out
}

// readMCP reads a tool of the type mcp.
func readMCP(raw json.RawMessage, path string) (*mcpServer, *apiError) {
	var s mcpServer
	var address, connector, tunnel string
	var allowed json.RawMessage
	if err := (fields{
		"type": ignored, "server_label": text(&s.label), "server_url": text(&address),
		"connector_id": text(&connector), "tunnel_id": text(&tunnel), "allowed_tools": asIs(&allowed),
		"allowed_callers": ignored, "authorization": ignored, "defer_loading": ignored, "headers": ignored,
		"require_approval": ignored, "server_description": ignored,
	}).apply(raw, path); err != nil {
		return nil, err
	}
	if err := need(s.label, path+".server_label"); err != nil {
		return nil, err
	}
	given := slices.DeleteFunc([]string{address, connector, tunnel}, func(v string) bool { return v == "" })
	if len(given) != 1 {
		// (own): the documentation requires one of them.
		return nil, invalid("invalid_value", path, "Exactly one of 'server_url', 'connector_id' and 'tunnel_id' must be provided.")
	}
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, invalid("invalid_value", path+".server_url", "Invalid '%s.server_url': expected an http or https URL.", path) // (own)
		}
		s.unreachable = strings.HasSuffix(strings.TrimSuffix(u.Hostname(), "."), ".invalid")
	}
	var err *apiError
	s.allowed, err = allowedTools(allowed, path+".allowed_tools")
	return &s, err
}

// allowedTools reads a list of names, or an object with such a list.
func allowedTools(raw json.RawMessage, path string) ([]string, *apiError) {
	if len(raw) == 0 || isNull(raw) {
		return nil, nil
	}
	list := raw
	if kindOf(raw) == "an object" {
		list = nil
		if err := (fields{"tool_names": asIs(&list), "read_only": ignored}).apply(raw, path); err != nil || list == nil {
			return nil, err
		}
		path += ".tool_names"
	}
	var names []string
	err := scalar(&names, "an array of strings")(list, path)
	return names, err
}

// listTools asks the servers of these tools for their lists, except those that
// were declared before in the same words.
func (c *conn) listTools(before, declared []tool) {
	for _, t := range declared {
		known := slices.ContainsFunc(before, func(old tool) bool { return bytes.Equal(old.raw, t.raw) })
		if t.mcp != nil && !known {
			c.listServer(t.mcp)
		}
	}
}

func (c *conn) listServer(s *mcpServer) {
	it := &item{id: "mcpl_" + c.ids.Base62(21), kind: "mcp_list_tools", status: completed, answered: true}
	list := func(tools []object) {
		it.raw = asRaw(object{"id", it.id, "type", it.kind, "server_label", s.label, "tools", tools})
	}
	list([]object{})
	it.size = len(it.raw)
	previous := c.conv.last()
	c.conv.insert(it, -1)
	c.emitItem("added", previous, it)
	c.emit("mcp_list_tools.in_progress", "item_id", it.id)
	if s.unreachable {
		c.emit("mcp_list_tools.failed", "item_id", it.id)
		return
	}
	list(s.tools())
	c.emit("mcp_list_tools.completed", "item_id", it.id)
	c.emitItem("done", previous, it)
}

// asRaw returns a value as JSON. It consists only of strings, which can always be encoded.
func asRaw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sim/openai: " + err.Error())
	}
	return b
}

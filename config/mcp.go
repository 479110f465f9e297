package config

import (
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"voicegw/config/setting"
)

// MCP configures the MCP servers whose tools the gateway offers, and the tools that MCP clients get.
type MCP struct {
	// The [lock file](mcp-tools.md#the-lock-file) with the approved tools, as an absolute path.
	Lock string `key:"lock" unset:"needed with servers" eg:"/etc/voicegw/mcp.lock.json"`
	// The servers, by their names.
	Servers MCPServers `key:"servers"`
	// Serves tools to [MCP clients](mcp-server.md) at `/mcp`.
	Serve bool `key:"serve"`
	// Ids of these tools.
	Expose []string `key:"expose" unset:"read-only tools that need no approval" eg:"[kb_search, kb_get]"`
	// Calls in a minute of one key, or of one address without a key.
	PerMinute int `key:"per_minute" from:"1" to:"100000"`
	// How users approve calls: `api`, or `elicitation` (the client asks its user; the API otherwise).
	Confirm string `key:"confirm" words:"api,elicitation"`
}

// The values of MCP.Confirm.
const (
	confirmAPI         = "api"
	ConfirmElicitation = "elicitation"
)

// MCPServers are MCP servers, by their names.
type MCPServers map[string]*MCPServer

// MCPServer is an MCP server: either a URL or a command.
type MCPServer struct {
	// Address of a server that speaks streamable HTTP.
	URL string `key:"url" eg:"https://crm.example.com/mcp"`
	// Secret headers of every request: `authorization=Bearer%20abc`, separated by commas.
	Headers setting.Secret `key:"headers" eg:"authorization=Bearer%20change-me"`
	// Header that carries the user of a call, if a trusted caller named the user.
	UserHeader string `key:"user_header" eg:"x-user"`
	// Program that speaks over its standard input and output, with its arguments.
	Command []string `key:"command" eg:"[/usr/bin/npx, -y, some-server]"`
	// The program's whole environment: `NAME=value`, separated by commas, with values escaped as in URLs.
	Env setting.Secret `key:"env" eg:"PATH=/usr/bin"`
}

const (
	mcpServersPrefix = "mcp.servers."
	mostMCPServers   = 20 // each has its own metrics
)

// Header returns the headers of every request. Load has checked them.
func (s *MCPServer) Header() http.Header {
	header := http.Header{}
	for name, value := range pairsOf(s.Headers) {
		header.Set(name, value)
	}
	return header
}

// Environment returns the program's environment, as NAME=value.
func (s *MCPServer) Environment() []string {
	pairs := pairsOf(s.Env)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		all = append(all, name+"="+pairs[name])
	}
	return all
}

func pairsOf(s setting.Secret) map[string]string {
	pairs, _ := setting.ParsePairs(s.Reveal()) // Load has checked them
	return pairs
}

func (v validator) validateMCP() {
	m := v.config.MCP
	names := slices.Sorted(maps.Keys(m.Servers))
	switch {
	case len(names) > mostMCPServers:
		v.bad(mcpServersPrefix+names[mostMCPServers]+".url", "There are %d MCP servers; at most %d are allowed.",
			len(names), mostMCPServers)
	case v.refused("mcp.lock") || v.refusedBelow("mcp.servers"):
	case m.Lock == "" && len(names) > 0:
		v.wrong("mcp.lock", "is missing; name the file for the approved tools, which voicegw mcp add writes")
	case m.Lock != "" && !filepath.IsAbs(m.Lock):
		v.wrong("mcp.lock", "must be a whole path, from the root")
	}
	for _, name := range names {
		v.validateMCPServer(mcpServersPrefix+name+".", m.Servers[name])
	}
}

func (v validator) validateMCPServer(prefix string, s *MCPServer) {
	program := len(s.Command) > 0
	switch u, err := url.Parse(s.URL); {
	case v.refusedBelow(strings.TrimSuffix(prefix, ".")):
	case program == (s.URL != ""):
		v.wrong(prefix+"url", "or command is needed, and not both: an address, or a program")
	case program:
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		v.wrong(prefix+"url", "must be a whole URL that begins with https:// or http://")
	case u.User != nil || u.Fragment != "":
		v.wrong(prefix+"url", "has a user, a password or a fragment; remove it, and put credentials into headers")
	}
	v.wrongIf(program && (s.Headers.IsSet() || s.UserHeader != ""), prefix+"command", "has no use for headers and user_header; a "+
		"program gets env")
	v.wrongIf(!program && s.Env.IsSet(), prefix+"env", "is for a command; a URL has headers")
	for key, text := range map[string]setting.Secret{"headers": s.Headers, "env": s.Env} {
		_, err := setting.ParsePairs(text.Reveal())
		v.failed(prefix+key, err)
	}
	v.wrongIf(s.UserHeader != "" && !httpguts.ValidHeaderFieldName(s.UserHeader), prefix+"user_header", "is not the name of a header")
}

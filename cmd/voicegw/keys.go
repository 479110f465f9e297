package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"voicegw/config"
	"voicegw/internal/auth"
	"voicegw/internal/origin"
)

type keysFlags struct {
	New  keysNewFlags  `cmd:"" help:"Make an API key and its settings for the gateway."`
	Hash keysHashFlags `cmd:"" help:"Print the settings of an existing key; it is read from standard input, to stay out of histories."`
}

type keyFlags struct {
	Name    string   `help:"Name of the key in the configuration, such as backend." placeholder:"NAME" required:""`
	Scopes  []string `help:"Scope: voice, chat, tickets, inspect, confirm, admin, metrics, or of a tool." placeholder:"SCOPE" required:""`
	User    string   `help:"The only user that the key may act for." placeholder:"NAME"`
	Owner   string   `help:"Who is responsible for the key." placeholder:"TEXT"`
	Expires string   `help:"Expiry of the key: 2027-01-31, or a time of RFC 3339." placeholder:"WHEN"`
}

type keysNewFlags struct{ keyFlags }

type keysHashFlags struct{ keyFlags }

func (flags keysNewFlags) Run(p Process, _ *kong.Context) error {
	key := auth.NewAPIKey()
	settings, err := flags.settings(key)
	if err != nil {
		return usage(err)
	}
	return p.print("# The key. It is shown only once. Give it only to its user:\n" + key.Reveal() + "\n\n" +
		"# Add this to the gateway's configuration:\n" + settings)
}

const maxKeyInput = 1 << 10

func (flags keysHashFlags) Run(p Process, _ *kong.Context) error {
	text, err := io.ReadAll(io.LimitReader(p.Stdin, maxKeyInput))
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	key, err := auth.ParseAPIKey(strings.TrimSpace(string(text)))
	if err != nil {
		return usage(err)
	}
	settings, err := flags.settings(key)
	if err != nil {
		return usage(err)
	}
	return p.print(settings)
}

// settings returns the settings of a key as YAML, validated like a file.
func (flags keyFlags) settings(key auth.APIKey) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "auth:\n  keys:\n    %s:\n      id: %q\n      sha256: %q\n      scopes: [%s]\n", flags.Name, key.ID(),
		key.Hash(), strings.Join(flags.Scopes, ", "))
	for _, optional := range []struct{ name, value string }{{"user", flags.User}, {"owner", flags.Owner}, {"expires", flags.Expires}} {
		if optional.value != "" {
			fmt.Fprintf(&b, "      %s: %s\n", optional.name, strconv.QuoteToGraphic(optional.value))
		}
	}
	text := b.String()
	_, _, err := config.Load(config.Source{File: "keys", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	var problems config.Problems
	if errors.As(err, &problems) {
		for i := range problems {
			problems[i].Where = "--" + flagOf(problems[i].Message)
		}
		return "", problems
	}
	return text, err
}

func flagOf(message string) string {
	for _, name := range []string{"scopes", "user", "owner", "expires"} {
		if key, _, _ := strings.Cut(message, " "); strings.HasSuffix(strings.TrimSuffix(key, ":"), "."+name) {
			return name
		}
	}
	return "name"
}

// localKey returns the key that a gateway on this machine generated: empty without one, and for other machines.
func (p Process) localKey(base string, cfg *config.Config) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", nil
	}
	host, err := origin.ParseHost(u.Host)
	if err != nil || !host.IP.IsLoopback() && host.Name != "localhost" {
		return "", nil
	}
	dir, err := p.DataDir(cfg)
	if err != nil || dir == "" {
		return "", nil // no folder, no key
	}
	key, err := auth.ReadOperatorKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return key, err
}

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/auth"
	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/cluster"
	"voicegw/registry"
	"voicegw/session"
	"voicegw/store"
	"voicegw/transport"
	"voicegw/transport/textmodel"
)

// Check returns every problem of a configuration, and warnings. It makes the parts of the gateway and discards them, but
// opens no port, contacts no server and changes no file. Its texts may contain secrets.
func Check(ctx context.Context, h Host, cfg *config.Config) (warnings []string, problems config.Problems) {
	c := &configCheck{host: h, cfg: cfg, logger: slog.New(slog.DiscardHandler)}
	c.run(ctx)
	return c.warnings, c.problems
}

// configCheck makes the parts of a configuration as newServer does, and discards them, except those that need the
// network, the store or an address.
type configCheck struct {
	host   Host
	cfg    *config.Config
	logger *slog.Logger // discards

	problems config.Problems
	warnings []string
}

// add records an error. where is its setting, unless the error names settings itself.
func (c *configCheck) add(where string, err error) {
	if found, ok := errors.AsType[config.Problems](err); ok {
		c.problems = append(c.problems, found...)
	} else if err != nil {
		c.problems.Add(where, "%s.", strings.TrimSuffix(err.Error(), "."))
	}
}

func (c *configCheck) run(ctx context.Context) {
	c.files()
	c.knowledge(ctx, c.cfg.KB)
	_, done, err := openScheduler(c.cfg.Calendar, "", c.logger)
	if c.add("calendar", err); err == nil {
		done()
	}
	keys, issuers := c.cfg.Auth.Options()
	who, err := auth.New(auth.Options{Keys: keys, Issuers: issuers, Transport: offline{}})
	if c.add("auth", err); err == nil {
		who.Close()
	}
	c.add("sim", errorOf(SimOptions(c.cfg.Sim)))
	c.add("image", errorOf(newImageGenerator(c.cfg, nil)))
	c.add("exact.recordings", errorOf(newSpeaker(c.cfg, nil)))
	c.add("chat", errorOf(textmodel.New(chatOptions(c.cfg, nil))))
	c.add("checks", errorOf(newChecks(c.cfg, nil, nil, c.logger)))
	told, err := c.host.openTraces(c.cfg, c.logger)
	c.add("traces", cmp.Or(err, told.Close(ctx)))
	if c.cfg.Cluster.Enabled() {
		c.add("cluster.secret", errorOf(cluster.New(cluster.Options{Secret: []byte(c.cfg.Cluster.Secret.Reveal())})))
	}
	_, _, err = allowedHosts(c.cfg, nil, nil)
	c.add("hosts", err)
	c.conversations()
}

func errorOf[T any](_ T, err error) error { return err }

func (c *configCheck) files() {
	dir, err := c.host.DataDir(c.cfg)
	c.add("data_dir", err)
	c.place("data_dir", dir, true)
	c.place("image.dir", string(c.cfg.Image.Dir), true)
	c.place("calendar.folder", string(c.cfg.Calendar.Folder), true)
	c.place("tls.acme.cache", string(c.cfg.TLS.ACME.Cache), true)
	c.place("kb.embeddings.cache", string(c.cfg.KB.Embeddings.Cache), false)
	if c.cfg.Audit.File != setting.Stdout {
		c.place("audit.file", string(c.cfg.Audit.File), false)
	}
	c.add("tls", errorOf(openCertificates(c.cfg, dir, c.logger)))
	c.add("prices.file", errorOf(priceTable(c.cfg)))
	c.add("store.credentials", store.CheckCredentials(string(c.cfg.Store.Credentials)))
}

// place checks the path of a file or folder that the gateway creates: anything that exists must have the right type.
func (c *configCheck) place(where, path string, folder bool) {
	if path == "" {
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		c.add(where, fmt.Errorf("%s: %w; name another path", where, err))
	case folder && !info.IsDir():
		c.add(where, fmt.Errorf("%s: %s is a file; name a folder", where, path))
	case !folder && info.IsDir():
		c.add(where, fmt.Errorf("%s: %s is a folder; name a file", where, path))
	}
}

func (c *configCheck) knowledge(ctx context.Context, cfg config.KB) {
	c.add("kb.namespaces", errorOf(newGrants(cfg.Namespaces)))
	synonyms, err := openSynonyms(cfg)
	if err != nil {
		c.add("kb.synonyms", err)
		return
	}
	index, err := local.Open(local.Options{Language: cfg.Language, Logger: c.logger})
	if err != nil {
		c.add("kb.language", err)
		return
	}
	read, err := kb.OpenSource(ctx, index, kb.SourceOptions{Path: string(cfg.Path), Synonyms: synonyms, Logger: c.logger})
	if c.add("kb.path", err); err == nil {
		err = read.Close()
	}
	c.add("kb.path", errors.Join(err, index.Close()))
}

func (c *configCheck) conversations() {
	tools, _, err := c.host.loadTools(registry.Options{Handlers: handlers(), ModeCapabilities: provided(), Dev: c.cfg.Dev,
		Logger: c.logger}, c.cfg, nil)
	if err != nil {
		c.add("tools", err)
		return
	}
	c.add("tools", checkTools(c.cfg, tools.Snapshot()))
	transports, err := newTransports(c.cfg, nil, nil, nil, c.logger)
	if err != nil {
		c.add("providers", err)
		return
	}
	c.add("provider", errorOf(session.NewManager(session.Options{Transports: transports, Provider: c.cfg.Provider,
		Fallback: c.cfg.Fallback, Logger: c.logger})))
	c.agents(tools.Snapshot(), transports)
}

func (c *configCheck) agents(tools *registry.Snapshot, transports map[string]transport.Transport) {
	w := agentWorld(c.cfg, tools, transports)
	doubts, err := checkProviderNames(c.cfg, w)
	c.warnings = append(c.warnings, doubts...)
	c.add("providers", err)
	files, err := readAgents(c.cfg, w)
	c.add("agents.path", err)
	for _, a := range files {
		for _, text := range a.Warnings {
			c.warnings = append(c.warnings, "the agent "+a.ID+", "+text)
		}
	}
	for _, feature := range idleFeatures(c.cfg.Features, tools) {
		c.warnings = append(c.warnings, "the feature "+feature+" is on, but no tool uses it in its availability")
	}
	for _, unset := range tools.Unset() {
		c.warnings = append(c.warnings, unset.String())
	}
}

type offline struct{}

func (offline) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("checking the configuration contacts no server")
}

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/config"
	"voicegw/internal/agent"
	"voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/google"
	"voicegw/internal/backends/calendar/ics"
	"voicegw/internal/backends/contacts"
	"voicegw/internal/backends/image"
	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
	"voicegw/internal/jstool"
	"voicegw/internal/mcp"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/session/handoff"
	"voicegw/store"
)

// capabilities are the backends of the tools, for serve and tools call.
type capabilities struct {
	// Fixed after openCapabilities.
	logger        *slog.Logger
	embed         *kb.EmbeddingCache // nil without an endpoint
	kb            kb.Index
	library       *kb.Library // kb, limited to the namespaces that each user may read
	source        *kb.Source  // keeps kb in sync with its folder
	store         *store.Store
	handoff       *handoff.Handoffs
	scheduler     *calendar.Scheduler
	closeCalendar func()
	images        images
	agents        *agent.Directory
	mcp           *mcp.Client   // connected when the tools are loaded
	hosts         *jstool.Hosts // of tools in JavaScript
	// contacts is expensive to make.
	contacts *contacts.Extractor

	flags atomic.Pointer[config.Config] // the current configuration, for features
}

// openCapabilities opens the configured backends, and the store with the options keep. Anything without a configured
// place is inside dataDir, which may be empty. The caller must close it.
func openCapabilities(ctx context.Context, cfg *config.Config, dataDir string, keep store.Options,
	logger *slog.Logger) (*capabilities, error) {
	c := &capabilities{logger: logger, contacts: contacts.New(), agents: &agent.Directory{}, mcp: mcp.NewClient(logger),
		hosts: jstool.New([]string{"tool-host"}, logger)}
	c.flags.Store(cfg)
	var err error
	if c.scheduler, c.closeCalendar, err = openScheduler(cfg.Calendar, dataDir, logger); err != nil {
		return nil, err
	}
	err = c.openStore(ctx, keep)
	if err == nil {
		c.handoff = handoff.New(c.store, cfg.Agent.Name)
		err = c.openKB(ctx, cfg.KB)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// storeOptions returns the place of the store: inside dataDir, or its own servers.
func storeOptions(cfg *config.Config, dataDir string, logger *slog.Logger) store.Options {
	o := store.Options{Logger: logger.With("component", "store"), AuditAge: cfg.Audit.MaxAge}
	if cfg.Store.URL != "" {
		o.URL, o.Credentials, o.Replicas = cfg.Store.URL, string(cfg.Store.Credentials), cfg.Store.Replicas
		return o
	}
	o.Dir = filepath.Join(dataDir, "store")
	if cfg.Store.Sync == config.SyncInterval {
		o.Sync = store.SyncInterval
	}
	return o
}

func (c *capabilities) openStore(ctx context.Context, o store.Options) error {
	var err error
	c.store, err = store.Open(ctx, o)
	var damaged *store.DamageError
	switch {
	case errors.As(err, &damaged):
		return fmt.Errorf("%w.\nRestore the data folder from a backup, or continue with the remaining data: voicegw serve "+
			"--accept-damage %s\nLost actions then count as started but not finished, and are not repeated until they expire. "+
			"See docs/data.md", damaged, damaged.Code)
	case errors.Is(err, store.ErrInUse):
		return fmt.Errorf("another voicegw uses this data folder (--data-dir, data_dir): %w", err)
	case err != nil && o.Dir != "":
		return fmt.Errorf("opening the store (--data-dir, data_dir): %w", err)
	case err != nil && o.URL != "":
		return fmt.Errorf("opening the store (store.url): %w", err)
	default:
		return err
	}
}

func (c *capabilities) openKB(ctx context.Context, cfg config.KB) error {
	grants, err := newGrants(cfg.Namespaces)
	if err != nil {
		return err
	}
	embedder, err := c.openEmbedder(cfg.Embeddings)
	if err != nil {
		return fmt.Errorf("kb.embeddings: %w", err)
	}
	synonyms, err := openSynonyms(cfg)
	if err != nil {
		return err
	}
	index, err := c.openIndex(ctx, cfg, embedder, synonyms)
	if err != nil { // the index is then a nil pointer
		return fmt.Errorf("opening the knowledge base: %w", err)
	}
	c.kb = index
	c.library = kb.NewLibrary(c.kb, grants)
	c.source, err = kb.OpenSource(ctx, c.kb, kb.SourceOptions{Path: string(cfg.Path), Synonyms: synonyms, Logger: c.logger})
	if err != nil {
		return fmt.Errorf("reading the knowledge base (kb.path): %w", err)
	}
	return nil
}

// openSynonyms may return nil: no file is configured.
func openSynonyms(cfg config.KB) (*kb.SynonymFile, error) {
	if cfg.Synonyms == "" {
		return nil, nil
	}
	synonyms, err := kb.OpenSynonyms(string(cfg.Synonyms))
	if err != nil {
		return nil, fmt.Errorf("reading the synonyms (kb.synonyms): %w", err)
	}
	return synonyms, nil
}

func newGrants(cfg config.Namespaces) (kb.Grants, error) {
	rules := map[kb.Namespace]kb.Grant{}
	for namespace, grant := range map[kb.Namespace]config.Grant{
		kb.NamespaceStudio: cfg.Studio, kb.NamespacePersonal: cfg.Personal, kb.NamespacePublic: cfg.Public,
	} {
		rule := kb.Grant{Agents: grant.Agents, Scopes: grant.Scopes}
		for _, name := range grant.Users {
			if name != kb.Everyone {
				who, err := user.Parse(name) // in the form of tickets
				if err != nil {
					return kb.Grants{}, fmt.Errorf("kb.namespaces.%s.users: %q %w", namespace, name, err)
				}
				name = who.String()
			}
			rule.Users = append(rule.Users, name)
		}
		for _, name := range grant.Agents {
			if strings.TrimSpace(name) != name || name == "" {
				return kb.Grants{}, fmt.Errorf(
					"kb.namespaces.%s.agents: %q isn't an agent name: it must not be empty or have surrounding spaces", namespace, name)
			}
		}
		for _, scope := range grant.Scopes {
			if scope != kb.Everyone && !spec.ValidScope(scope) {
				return kb.Grants{}, fmt.Errorf("kb.namespaces.%s.scopes: %q must be 1 to %d letters, digits or . _ : / -",
					namespace, scope, spec.MaxScopeBytes)
			}
		}
		rules[namespace] = rule
	}
	return kb.NewGrants(rules)
}

// openEmbedder may return nil: no endpoint is configured.
func (c *capabilities) openEmbedder(cfg config.Embeddings) (kb.Embedder, error) {
	if cfg.BaseURL == "" {
		return nil, nil
	}
	client := kb.NewEmbeddingClient(kb.EmbeddingOptions{BaseURL: cfg.BaseURL, APIKey: cfg.APIKey.Reveal(), Model: cfg.Model})
	var err error
	c.embed, err = kb.NewEmbeddingCache(client, kb.EmbeddingCacheOptions{Path: string(cfg.Cache), Identity: client.Identity()})
	return c.embed, err
}

func (c *capabilities) openIndex(ctx context.Context, cfg config.KB, embedder kb.Embedder, synonyms *kb.SynonymFile) (kb.Index, error) {
	var current func() *kb.Synonyms
	if synonyms != nil {
		current = synonyms.Current
	}
	if cfg.Qdrant.URL == "" {
		return local.Open(local.Options{Embedder: embedder, Language: cfg.Language, Synonyms: current, Logger: c.logger})
	}
	return kb.OpenQdrant(ctx, kb.QdrantOptions{
		URL: cfg.Qdrant.URL, APIKey: cfg.Qdrant.APIKey.Reveal(), Collection: cfg.Qdrant.Collection, Embedder: embedder,
		Language: cfg.Language, Synonyms: current, Logger: c.logger,
	})
}

func (c *capabilities) close() error {
	var err error
	c.mcp.Close()
	c.hosts.Close()
	if c.source != nil {
		err = c.source.Close()
	}
	if c.kb != nil {
		err = errors.Join(err, c.kb.Close())
	}
	if c.embed != nil {
		err = errors.Join(err, c.embed.Close())
	}
	if c.closeCalendar != nil {
		c.closeCalendar()
	}
	if c.store != nil {
		err = errors.Join(err, c.store.Close())
	}
	return errors.Join(err, c.images.close())
}

// registryOptions returns the handlers, and the capabilities that tools' Needs may name.
func (c *capabilities) registryOptions(dev bool) registry.Options {
	return registry.Options{
		Handlers:         handlers(),
		Capabilities:     []any{c.library, blocks{c.store.Blocks}, c.handoff, c.contacts, c.scheduler, c.images.studio, c.agents},
		ModeCapabilities: map[spec.Mode][]reflect.Type{spec.ModeText: ofText},
		Feature:          c.feature, Dev: dev, Logger: c.logger,
	}
}

// ofText are the capabilities of text conversations only.
var ofText = []reflect.Type{
	reflect.TypeFor[registry.Inviter](), reflect.TypeFor[registry.Gallery](), reflect.TypeFor[registry.Stream](),
}

func (c *capabilities) feature(agent, name string) bool {
	cfg := c.flags.Load()
	return cfg != nil && cfg.Feature(agent, name)
}

type blocks struct{ *store.Blocks }

func (b blocks) Block(ctx context.Context, user string, until time.Time) error {
	err := b.Blocks.Block(ctx, user, until)
	switch {
	case errors.Is(err, store.ErrUser):
		return fmt.Errorf("%w: %w", registry.ErrUser, err)
	case errors.Is(err, store.ErrFull):
		return fmt.Errorf("%w: %w", registry.ErrFull, err)
	default:
		return err
	}
}

// provided must match registryOptions; the build checks tools' Needs against it without loading them.
func provided() map[spec.Mode][]reflect.Type {
	voice := append([]reflect.Type{
		reflect.TypeFor[*kb.Library](), reflect.TypeFor[registry.Blocks](), reflect.TypeFor[registry.VoiceSessions](),
		reflect.TypeFor[*contacts.Extractor](), reflect.TypeFor[*calendar.Scheduler](), reflect.TypeFor[*image.Studio](),
		reflect.TypeFor[registry.Agents](), reflect.TypeFor[*registry.Snapshot](),
	}, registry.CallCapabilities()...)
	return map[spec.Mode][]reflect.Type{spec.ModeVoice: voice, spec.ModeText: slices.Concat(voice, ofText)}
}

// blocked is session.Options.Blocked. While the store is unavailable it uses the last known state.
func (c *capabilities) blocked(who user.User) (until time.Time, ok bool) {
	return c.store.Blocks.Blocked(who.String())
}

// openScheduler makes the backend of the calendar tools, without connecting. The folder of calendars is inside dataDir
// unless configured; with neither there are no calendars. done releases the backend.
func openScheduler(cfg config.Calendar, dataDir string, logger *slog.Logger) (scheduler *calendar.Scheduler, done func(), err error) {
	zone := user.ZoneOr(cfg.TimeZone, time.UTC)
	c, err := openCalendar(cfg, dataDir, zone)
	if err != nil {
		return nil, nil, fmt.Errorf("calendar: %w", err)
	}
	done = func() {}
	if remote, is := c.(interface{ Close() }); is {
		done = remote.Close
	}
	return calendar.NewScheduler(c, calendar.SchedulerOptions{
		Zone: zone, MeetingURL: cfg.MeetingURL, Logger: logger.With("component", "calendar"),
	}), done, nil
}

func openCalendar(cfg config.Calendar, dataDir string, zone *time.Location) (calendar.Calendar, error) {
	names := map[calendar.Name]string{calendar.Primary: cfg.Primary, calendar.Team: cfg.Team, calendar.Personal: cfg.Personal}
	maps.DeleteFunc(names, func(_ calendar.Name, is string) bool { return is == "" })
	switch cfg.Kind() {
	case config.CalendarCalDAV:
		return ics.NewCalDAV(ics.CalDAVOptions{
			URL: cfg.CalDAV.URL, User: cfg.CalDAV.User, Password: cfg.CalDAV.Password.Reveal(),
			Calendars: names, Zone: zone, Email: cfg.Email,
		})
	case config.CalendarGoogle:
		credentials, err := os.ReadFile(string(cfg.Google.Credentials))
		if err != nil {
			return nil, fmt.Errorf("reading calendar.google.credentials: %w", err)
		}
		c, err := google.New(google.Options{Credentials: credentials, Subject: cfg.Google.Subject, BaseURL: cfg.Google.BaseURL,
			Calendars: names, Zone: zone})
		if err != nil {
			return nil, fmt.Errorf("calendar.google: %w", err)
		}
		return c, nil
	}
	dir := string(cfg.Folder)
	if dir == "" && dataDir != "" {
		dir = filepath.Join(dataDir, "calendar")
	}
	return ics.NewFolder(ics.FolderOptions{Dir: dir, Calendars: names, Zone: zone, Email: cfg.Email})
}

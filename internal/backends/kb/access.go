package kb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNotGranted is wrapped by a Reader's error if it may read none of the requested namespaces.
var ErrNotGranted = errors.New("kb: the namespace is not granted")

// Everyone in a list of a Grant means any user, agent or scope, even an unvouched user.
const Everyone = "*"

// Grant permits the users, agents and scopes in its lists to read a namespace.
type Grant struct {
	Users, Agents, Scopes []string
}

// Asker identifies the reader of records.
type Asker struct {
	// User counts only if Vouched, which means that a trusted caller named it: a client can give any name.
	User    string
	Vouched bool
	Agent   string   // the name of the model's agent
	Scopes  []string // must be from a trusted caller
}

// Grants decide who may read which namespace. Everybody may read a namespace without a Grant, except NamespacePersonal,
// which is closed then. They may be used concurrently.
type Grants map[Namespace]Grant

// NewGrants makes Grants. It ignores a Grant whose lists are all empty. The error names an unknown namespace.
func NewGrants(rules map[Namespace]Grant) (Grants, error) {
	g := Grants{}
	for namespace, rule := range rules {
		if !slices.Contains(Namespaces(), namespace) {
			return nil, fmt.Errorf("kb: namespace %q is not one of %s", namespace, joined(Namespaces()))
		}
		if len(rule.Users)+len(rule.Agents)+len(rule.Scopes) > 0 {
			g[namespace] = rule
		}
	}
	return g, nil
}

// For returns the namespaces that an asker may read, in the order of Namespaces.
func (g Grants) For(who Asker) []Namespace {
	var granted []Namespace
	for _, namespace := range Namespaces() {
		rule, mentioned := g[namespace]
		if !mentioned && namespace != NamespacePersonal || mentioned && rule.holds(who) {
			granted = append(granted, namespace)
		}
	}
	return granted
}

func (g Grant) holds(who Asker) bool {
	if slices.Contains(slices.Concat(g.Users, g.Agents, g.Scopes), Everyone) {
		return true
	}
	return who.Vouched && who.User != "" && slices.Contains(g.Users, who.User) ||
		who.Agent != "" && slices.Contains(g.Agents, who.Agent) ||
		slices.ContainsFunc(who.Scopes, func(scope string) bool { return slices.Contains(g.Scopes, scope) })
}

// Library is an index with Grants. Tools get a Library instead of an Index, so that no tool can forget the Grants. It
// may be used concurrently.
type Library struct {
	// Fixed after NewLibrary.
	index  Index
	grants Grants
}

// NewLibrary makes a Library. The caller still closes the index.
func NewLibrary(index Index, grants Grants) *Library { return &Library{index: index, grants: grants} }

// For returns a Reader of the records that an asker may read.
func (l *Library) For(who Asker) *Reader { return &Reader{index: l.index, granted: l.grants.For(who)} }

// Reader reads the granted namespaces of an asker. It may be used concurrently.
type Reader struct {
	// Fixed after Library.For.
	index   Index
	granted []Namespace
}

// Granted returns the granted namespaces.
func (r *Reader) Granted() []Namespace { return slices.Clone(r.granted) }

// Search is Index.Search over the granted namespaces of the query, or over all granted ones if the query has none.
// refused are the query's other namespaces. If no namespace is granted, the error wraps ErrNotGranted.
func (r *Reader) Search(ctx context.Context, q Query) (found Results, refused []Namespace, err error) {
	if err := q.Check(); err != nil {
		return Results{}, nil, err
	}
	if q.Namespaces, refused, err = r.readable(q.Namespaces); err != nil {
		return Results{}, refused, err
	}
	found, err = r.index.Search(ctx, q)
	// An index over the network may return a record that has just changed its namespace.
	found.Hits = slices.DeleteFunc(found.Hits, func(h Hit) bool { return !slices.Contains(q.Namespaces, h.Record.Namespace) })
	return found, refused, err
}

// readable splits namespaces into granted and refused ones; no namespaces mean all granted ones. It fails if none is
// granted.
func (r *Reader) readable(wanted []Namespace) (granted, refused []Namespace, err error) {
	if len(wanted) == 0 {
		wanted = r.granted
	}
	for _, namespace := range wanted {
		if slices.Contains(r.granted, namespace) {
			granted = append(granted, namespace)
		} else {
			refused = append(refused, namespace)
		}
	}
	if len(granted) == 0 { // an Index would search all namespaces
		err = fmt.Errorf("%w: asked for %s; granted: %s", ErrNotGranted, orNone(refused), orNone(r.granted))
	}
	return granted, refused, err
}

// Names is Index.Names over the granted ones of the namespaces. If no namespace is granted, the error wraps
// ErrNotGranted.
func (r *Reader) Names(ctx context.Context, namespaces []Namespace) (Names, error) {
	granted, _, err := r.readable(namespaces)
	if err != nil {
		return Names{}, err
	}
	return r.index.Names(ctx, granted)
}

// Get is Index.Get. A record of another namespace counts as missing, so that its existence stays secret.
func (r *Reader) Get(ctx context.Context, ids []string) (found []Record, missing []string, err error) {
	all, _, err := r.index.Get(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	readable := map[string]Record{}
	for _, record := range all {
		if slices.Contains(r.granted, record.Namespace) {
			readable[record.ID] = record
		}
	}
	found, missing = Pick(ids, func(id string) (Record, bool) {
		record, ok := readable[id]
		return record, ok
	})
	return found, missing, nil
}

func orNone(namespaces []Namespace) string {
	if len(namespaces) == 0 {
		return "no namespace"
	}
	return joined(namespaces)
}

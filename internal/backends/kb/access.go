package kb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotGranted is wrapped by a Reader's error if it may read none of the requested namespaces.
// The text around it names them.
var ErrNotGranted = errors.New("kb: the namespace is not granted")

// Everyone in a list of a Grant stands for any user, agent or scope, even for a user whom nobody
// vouches for.
const Everyone = "*"

// Grant lists who may read a namespace. Being in one of the lists is enough.
type Grant struct {
	Users, Agents, Scopes []string
}

func (g Grant) empty() bool { return len(g.Users)+len(g.Agents)+len(g.Scopes) == 0 }

// Asker says for whom records are read.
type Asker struct {
	// User counts only if Vouched says that a trusted caller named it: a client can give any
	// name.
	User    string
	Vouched bool
	// Agent is the name of the agent that the model speaks for.
	Agent string
	// Scopes come from a trusted caller only.
	Scopes []string
}

// Grants say who may read which namespace. A namespace without a Grant is open to everybody,
// except kb.NamespacePersonal, which nobody may read then. The zero Grants have no Grant. They may
// be used concurrently.
type Grants struct {
	// Fixed after NewGrants.
	rules map[Namespace]Grant
}

// NewGrants makes Grants. A Grant whose lists are all empty counts as missing. The error names a
// namespace that does not exist.
func NewGrants(rules map[Namespace]Grant) (Grants, error) {
	g := Grants{rules: map[Namespace]Grant{}}
	for namespace, rule := range rules {
		if !slices.Contains(Namespaces(), namespace) {
			return Grants{}, fmt.Errorf("kb: namespace %q is not one of %s", namespace, listNamespaces(Namespaces()))
		}
		if !rule.empty() {
			g.rules[namespace] = rule
		}
	}
	return g, nil
}

// For returns the namespaces that the asker may read, in the order of kb.Namespaces.
func (g Grants) For(who Asker) []Namespace {
	var granted []Namespace
	for _, namespace := range Namespaces() {
		rule, mentioned := g.rules[namespace]
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

// Library is an index together with the rules about who may read it. Tools are given a Library
// and no Index, so that no tool can forget to ask. It may be used concurrently.
type Library struct {
	// Fixed after NewLibrary.
	index  Index
	grants Grants
}

// NewLibrary makes a Library. The caller still closes the index.
func NewLibrary(index Index, grants Grants) *Library {
	return &Library{index: index, grants: grants}
}

// For returns the part of the library that the asker may read.
func (l *Library) For(who Asker) *Reader {
	return &Reader{index: l.index, granted: l.grants.For(who)}
}

// Reader reads the namespaces that somebody is granted. It may be used concurrently.
type Reader struct {
	// Fixed after Library.For.
	index   Index
	granted []Namespace
}

// Granted returns the namespaces that may be read.
func (r *Reader) Granted() []Namespace { return slices.Clone(r.granted) }

// Search is kb.Index.Search over the granted namespaces of the query, or over all granted ones if
// the query names none. refused are the query's namespaces that are not granted. Namespaces are
// filtered before hits are counted, so none is lost. If no namespace is granted, the error wraps
// ErrNotGranted.
func (r *Reader) Search(ctx context.Context, q Query) (found Results, refused []Namespace, err error) {
	if err := q.Check(); err != nil {
		return Results{}, nil, err
	}
	if q.Namespaces, refused, err = r.readable(q.Namespaces); err != nil {
		return Results{}, refused, err
	}
	found, err = r.index.Search(ctx, q)
	// In an index over the network, a record may change its namespace between filter and read.
	found.Hits = slices.DeleteFunc(found.Hits, func(h Hit) bool { return !slices.Contains(q.Namespaces, h.Record.Namespace) })
	return found, refused, err
}

// readable splits namespaces into those that may be read, of which there is at least one, and the others.
// None given means all that may be read.
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
	if len(granted) == 0 { // for an Index, an empty list means every namespace
		err = fmt.Errorf("%w: asked for %s; granted: %s", ErrNotGranted, orNone(refused), orNone(r.granted))
	}
	return granted, refused, err
}

// Names is kb.Index.Names over the granted ones of the namespaces, so that nobody learns who and what there
// is elsewhere. If no namespace is granted, the error wraps ErrNotGranted.
func (r *Reader) Names(ctx context.Context, namespaces []Namespace) (Names, error) {
	granted, _, err := r.readable(namespaces)
	if err != nil {
		return Names{}, err
	}
	return r.index.Names(ctx, granted)
}

// Get is kb.Index.Get. A record of a namespace that is not granted counts as missing, so that nobody
// learns which records exist.
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
	return listNamespaces(namespaces)
}

func listNamespaces(namespaces []Namespace) string {
	names := make([]string, len(namespaces))
	for i, n := range namespaces {
		names[i] = string(n)
	}
	return strings.Join(names, ", ")
}

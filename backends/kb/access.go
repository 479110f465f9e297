package kb

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNotGranted is wrapped by what a Reader returns when nothing of what is asked for
// may be read. The text around it names the namespaces.
var ErrNotGranted = errors.New("kb: the namespace is not granted")

// Everyone in a list of a Grant stands for any user, agent or scope, also for a user
// whom nobody vouches for.
const Everyone = "*"

// Grant lists who may read a namespace. Being in one of the lists is enough.
type Grant struct {
	Users, Agents, Scopes []string
}

func (g Grant) empty() bool { return len(g.Users)+len(g.Agents)+len(g.Scopes) == 0 }

// Asker is on whose behalf records are asked for.
type Asker struct {
	// User counts only where Vouched says that a trusted caller named it: a client can
	// call itself anything.
	User    string
	Vouched bool
	// Agent is the name of the agent that the model speaks for.
	Agent string
	// Scopes come from a trusted caller only.
	Scopes []string
}

// Grants say who may read which namespace. A namespace that they do not mention is open
// to everybody, but for NamespacePersonal, which then nobody may read. The zero Grants
// mention none. They may be used by any number of goroutines at once.
type Grants struct {
	// Fixed after NewGrants.
	rules map[Namespace]Grant
}

// NewGrants makes Grants. A Grant whose lists are all empty does not mention its
// namespace. The error names a namespace that does not exist.
func NewGrants(rules map[Namespace]Grant) (Grants, error) {
	g := Grants{rules: map[Namespace]Grant{}}
	for namespace, rule := range rules {
		if !slices.Contains(Namespaces(), namespace) {
			return Grants{}, fmt.Errorf("kb: namespace %q is not one of %s", namespace, list(Namespaces()))
		}
		if !rule.empty() {
			g.rules[namespace] = rule
		}
	}
	return g, nil
}

// For returns the namespaces that the asker may read, in the order of Namespaces.
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

// Library is an index together with who may read what of it. Tools are given a Library
// and no Index, so that no tool can forget to ask. It may be used by any number of
// goroutines at once.
type Library struct {
	// Fixed after NewLibrary.
	index  Index
	grants Grants
}

// NewLibrary makes a Library. The index stays the caller's to close.
func NewLibrary(index Index, grants Grants) *Library {
	return &Library{index: index, grants: grants}
}

// For returns the part of the library that the asker may read.
func (l *Library) For(who Asker) *Reader {
	return &Reader{index: l.index, granted: l.grants.For(who)}
}

// Reader reads the namespaces that somebody is granted. It may be used by any number of
// goroutines at once.
type Reader struct {
	// Fixed after Library.For.
	index   Index
	granted []Namespace
}

// Granted returns the namespaces that may be read.
func (r *Reader) Granted() []Namespace { return slices.Clone(r.granted) }

// Search is Index.Search over the namespaces of the query that are granted; over all
// granted ones where the query names none. refused are those of the query that are not
// granted; they filter before hits are counted, so no hit is lost to them. Where none is
// granted, the error wraps ErrNotGranted.
func (r *Reader) Search(ctx context.Context, q Query) (found Results, refused []Namespace, err error) {
	if err := q.Check(); err != nil {
		return Results{}, nil, err
	}
	wanted := q.Namespaces
	if len(wanted) == 0 {
		wanted = r.granted
	}
	q.Namespaces = nil
	for _, namespace := range wanted {
		if slices.Contains(r.granted, namespace) {
			q.Namespaces = append(q.Namespaces, namespace)
		} else {
			refused = append(refused, namespace)
		}
	}
	if len(q.Namespaces) == 0 { // for an Index, no namespace is every namespace
		return Results{}, refused, fmt.Errorf("%w: asked for %s; granted: %s", ErrNotGranted, orNone(refused), orNone(r.granted))
	}
	found, err = r.index.Search(ctx, q)
	// A record of an index over the network may change hands between filter and reading.
	found.Hits = slices.DeleteFunc(found.Hits, func(h Hit) bool { return !slices.Contains(q.Namespaces, h.Record.Namespace) })
	return found, refused, err
}

// Get is Index.Get. A record of a namespace that is not granted is missing, like one
// that does not exist, so that nobody learns which of them exist.
func (r *Reader) Get(ctx context.Context, ids []string) (found []Record, missing []string, err error) {
	all, _, err := r.index.Get(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	readable := map[string]bool{}
	for _, record := range all {
		if slices.Contains(r.granted, record.Namespace) {
			readable[record.ID] = true
			found = append(found, record)
		}
	}
	named := map[string]bool{}
	for _, id := range ids { // in the order of the ids, as an Index names them
		if !readable[id] && !named[id] {
			named[id] = true
			missing = append(missing, id)
		}
	}
	return found, missing, nil
}

func orNone(namespaces []Namespace) string {
	if len(namespaces) == 0 {
		return "no namespace"
	}
	return list(namespaces)
}

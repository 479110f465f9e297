package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"voicegw/registry/document"
	"voicegw/registry/spec"
)

type candidate struct {
	place document.Pointer
	tool  *Tool
}

type variants struct {
	byTool map[string][]*Tool // by the main tool's id, sorted by their own ids; fixed after load

	drawn kept[*Snapshot] // by variant
}

const maxDraws = 64

// drawn is a snapshot's drawn versions; immutable.
type drawn struct {
	versions map[string]string // by tool, for tools with several versions
	others   string            // the drawn variants by their own ids; may be empty
}

func (d *drawn) ids() string {
	if d == nil {
		return ""
	}
	return d.others
}

func (l *loader) version(place document.Pointer, t *Tool) {
	if l.isVersion(t.ToolID) {
		l.problem(place.With("toolId"), "There are two tools %q.", t.ToolID)
		return
	}
	t.variant, t.share = t.ToolID, l.settings[t.ToolID].Share
	l.bind(place, t)
	l.versions = append(l.versions, candidate{place, t})
}

func (l *loader) isVersion(id string) bool {
	return slices.ContainsFunc(l.versions, func(c candidate) bool { return c.tool.variant == id })
}

func (l *loader) addVersions() {
	all := map[string][]*Tool{}
	for _, c := range l.versions {
		of := c.tool.VariantOf
		main, ok := l.snapshot.tools[of]
		switch {
		case slices.Contains(l.snapshot.off, of):
			continue // disabling a tool disables its variants
		case !ok:
			l.problem(c.place.With("variantOf"), "%[2]s is a version of %[1]q, but there is no such tool%[3]s.", of, c.tool.variant,
				document.DidYouMean(of, slices.Collect(maps.Keys(l.snapshot.tools))))
			continue
		}
		for _, p := range document.Under(c.place, spec.Disagreements(&main.Spec, &c.tool.Spec)) {
			p.Message = c.tool.variant + ": " + p.Message
			l.problems = append(l.problems, p)
		}
		for _, other := range all[of] {
			if other.Version == c.tool.Version {
				l.problem(c.place.With("version"), "%s and %s have the same version, %s; the audit tells versions apart by it.",
					other.variant, c.tool.variant, other.Version)
			}
		}
		c.tool.ToolID = of
		all[of] = append(all[of], c.tool)
	}
	for id, versions := range all {
		slices.SortFunc(versions, func(a, b *Tool) int { return strings.Compare(a.variant, b.variant) })
		sum := 0
		for _, t := range versions {
			sum += t.share
		}
		if sum > 100 {
			l.problem(document.Pointer{"tools"},
				"The versions of %s have shares of %d together; the limit is 100.", id, sum)
		}
	}
	if len(all) > 0 {
		l.snapshot.variants = &variants{byTool: all}
	}
}

// Version is a variant of a tool.
type Version struct {
	// ID is the variant's own name, for the configuration. Share is the percentage of users who get it.
	ID      string `json:"id"`
	Version string `json:"version"`
	Share   int    `json:"share"`
}

// Versions returns a tool's variants, sorted by id. Only a Registry's whole snapshot knows them.
func (s *Snapshot) Versions(tool string) []Version {
	if s.variants == nil {
		return nil
	}
	var all []Version
	for _, t := range s.variants.byTool[tool] {
		all = append(all, Version{ID: t.variant, Version: t.Version, Share: t.share})
	}
	return all
}

// VersionOf returns the tool and version of a variant's id.
func (s *Snapshot) VersionOf(id string) (tool, version string, ok bool) {
	if s.variants == nil {
		return "", "", false
	}
	for tool, all := range s.variants.byTool {
		for _, t := range all {
			if t.variant == id {
				return tool, t.Version, true
			}
		}
	}
	return "", "", false
}

// Draw returns the snapshot with one version of each tool: the pinned one, by tool id, if it exists, otherwise one
// drawn for by, a user or an anonymous user's conversation. Draws are stable for equal shares, on all gateways, and
// users keep a version whose share grows. Draw before other methods that reduce a snapshot; drawing again has no
// effect. A nil snapshot stays nil.
func (s *Snapshot) Draw(by string, pinned map[string]string) *Snapshot {
	if s == nil || s.variants == nil || s.drawn != nil {
		return s
	}
	picks := make(map[string]*Tool, len(s.variants.byTool))
	d := &drawn{versions: map[string]string{}}
	var key strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.variants.byTool)) {
		t := s.pick(id, by, pinned[id])
		picks[id], d.versions[id] = t, t.Version
		if t.variant != "" {
			key.WriteString(t.variant + " " + t.Version + "\n")
		}
	}
	d.others = key.String()
	return s.variants.drawn.get(d.others, maxDraws, func() *Snapshot { return s.with(picks, d) })
}

func (s *Snapshot) pick(id, by, pinned string) *Tool {
	main, all := s.tools[id], s.variants.byTool[id]
	if pinned == main.Version {
		return main
	}
	if i := slices.IndexFunc(all, func(t *Tool) bool { return t.Version == pinned }); i >= 0 {
		return all[i]
	}
	place := lot(id, by)
	for _, t := range all {
		if place < uint64(t.share) {
			return t
		}
		place -= uint64(t.share)
	}
	return main
}

// lot returns by's place among the users of a tool, 0 to 99.
func lot(tool, by string) uint64 {
	sum := sha256.Sum256([]byte(tool + "\n" + by))
	return binary.BigEndian.Uint64(sum[:8]) % 100
}

func (s *Snapshot) with(picks map[string]*Tool, d *drawn) *Snapshot {
	tools := make([]*Tool, len(s.sorted))
	for i, t := range s.sorted {
		tools[i] = cmp.Or(picks[t.ToolID], t)
	}
	made := s.holding(tools)
	made.drawn, made.loaded, made.fillings = d, made, &kept[*Snapshot]{}
	return made
}

// Drawn returns the drawn versions by tool id, to pin them when the session resumes; nil without variants. The caller
// must not change it.
func (s *Snapshot) Drawn() map[string]string {
	if s == nil || s.drawn == nil {
		return nil
	}
	return s.drawn.versions
}

package cost

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

const formVersion = 1

const mostModels = 2000

//go:embed prices.yaml
var builtIn []byte

// BuiltIn returns the embedded table.
var BuiltIn = sync.OnceValue(func() *Table {
	t, err := Parse("prices.yaml", builtIn)
	if err != nil {
		panic(err) // tested
	}
	return t
})

// Parse reads a price table (docs/cost.md). The error is a *strict.Error with all problems. A missing kind of token is
// unpriced, but a cached one costs as much as an uncached one. Only a written 0 is free.
func Parse(name string, data []byte) (*Table, error) {
	r := &reader{Reader: strict.NewReader(name), table: &Table{models: map[string][]row{}}}
	if top := r.Document(data); top != nil {
		r.file(top)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	for _, rows := range r.table.models {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.from, a.from) })
	}
	return r.table, nil
}

// With returns a table in which own replaces all rows of its models. The version then has t's date and own's checksum.
func (t *Table) With(own *Table) *Table {
	all := Table{Date: t.Date, models: maps.Clone(t.models)}
	maps.Copy(all.models, own.models)
	all.Version = t.Version + "+" + own.Date + "-" + own.sum()
	return &all
}

// sum returns a table's checksum in eight letters.
func (t *Table) sum() string {
	h := sha256.New()
	for _, name := range t.Models() {
		for _, r := range t.models[name] {
			_, _ = fmt.Fprintln(h, name, r.from, r.prices) // a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

type reader struct {
	*strict.Reader
	table *Table
}

func (r *reader) file(top *yaml.Node) {
	m, ok := r.Map(top, "the file", "version", "date", "prices")
	if !ok {
		return
	}
	if !m.Has("version") {
		r.Problem(top, "the file has no version; begin it with version: %d", formVersion)
	} else {
		r.Int(m.Get("version"), "version", formVersion, formVersion)
	}
	r.table.Date = r.day(m.Get("date"), "date")
	if !m.Has("date") {
		r.Problem(top, "the table has no date; add the day its prices were read, such as date: 2026-11-25")
	}
	r.table.Version = r.table.Date
	if !m.Has("prices") {
		r.Problem(top, "the table has no prices; add prices: with a list of models")
		return
	}
	for _, n := range r.List(m.Get("prices"), "prices") {
		r.row(n)
	}
}

func (r *reader) row(n *yaml.Node) {
	m, ok := r.Map(n, "the price", "models", "source", "from", "input", "cached", "output", "minute")
	if !ok {
		return
	}
	if source, _ := r.Text(m.Get("source"), "source"); strings.TrimSpace(source) == "" {
		r.Problem(n, "the price has no source; add its address and the day it was read")
	}
	one := row{from: r.day(m.Get("from"), "from"), prices: Prices{
		InputText: Unknown, InputAudio: Unknown, InputImage: Unknown,
		CachedText: Unknown, CachedAudio: Unknown, CachedImage: Unknown,
		OutputText: Unknown, OutputAudio: Unknown, Second: Unknown,
	}}
	p := &one.prices
	r.kinds(m.Get("input"), "input", map[string]*Price{"text": &p.InputText, "audio": &p.InputAudio, "image": &p.InputImage})
	r.kinds(m.Get("cached"), "cached", map[string]*Price{"text": &p.CachedText, "audio": &p.CachedAudio, "image": &p.CachedImage})
	r.kinds(m.Get("output"), "output", map[string]*Price{"text": &p.OutputText, "audio": &p.OutputAudio})
	if m.Has("minute") {
		var minute Price
		r.price(m.Get("minute"), "minute", "a minute", mostMinute, &minute)
		p.Second = minute * million / 60
	} else if !m.Has("input") || !m.Has("output") {
		r.Problem(n, "the price needs input and output, or minute")
	}
	if !m.Has("models") {
		r.Problem(n, "the price has no model; add models: [name]")
		return
	}
	for _, is := range r.List(m.Get("models"), "models") {
		r.model(is, one)
	}
}

var modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9._:-]{0,127}$`)

func (r *reader) model(n *yaml.Node, one row) {
	name, ok := r.Text(n, "the name of a model")
	switch {
	case !ok:
	case !modelName.MatchString(name):
		r.Problem(n, "%q is not a valid model name: use at most 128 lower-case letters, digits and . _ : -, without a path", name)
	case slices.ContainsFunc(r.table.models[name], func(o row) bool { return o.from == one.from }):
		r.Problem(n, "the model %s has two prices from the same day; remove one", name)
	case len(r.table.models) >= mostModels:
		r.Problem(n, "the table has more than %d models", mostModels)
	default:
		r.table.models[name] = append(r.table.models[name], one)
	}
}

func (r *reader) kinds(n *yaml.Node, what string, into map[string]*Price) {
	m, ok := r.Map(n, what, slices.Sorted(maps.Keys(into))...)
	if !ok {
		return
	}
	if len(m.Keys()) == 0 {
		r.Problem(n, "%s is empty; remove it or add a price", what)
	}
	for _, kind := range m.Keys() {
		r.price(m.Get(kind), what+"."+kind, "a million tokens", mostPrice, into[kind])
	}
}

// price reads dollars exactly, with at most six decimals; a float would round.
func (r *reader) price(n *yaml.Node, what, of string, most Micros, into *Price) {
	text, ok := r.Text(n, what)
	if !ok {
		return
	}
	micros, ok := ParseDollars(text)
	if !ok || micros > most {
		r.Problem(n, "%s must be dollars for %s, such as 0.75, with at most six decimals and at most %d, not %q", what, of,
			most/million, text)
		return
	}
	*into = Price(micros)
}

func (r *reader) day(n *yaml.Node, what string) string {
	text, ok := r.Text(n, what)
	if !ok {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		r.Problem(n, "%s must be a day such as 2026-11-25, not %q", what, text)
		return ""
	}
	return text
}

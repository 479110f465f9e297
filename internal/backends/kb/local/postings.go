package local

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"

	"voicegw/internal/backends/kb"
)

type recordWords struct {
	in    kb.Language
	parts [kb.Parts][]kb.Term
}

// lengths are numbers of word forms by part, of one record or of all.
type lengths [kb.Parts]int

func (w recordWords) lengths() (all lengths) {
	for i, terms := range w.parts {
		for _, t := range terms {
			all[i] += len(t.Forms)
		}
	}
	return all
}

// postings are the lists of all terms. Searches read them while an Apply adds to them: a list
// may have numbers that are not in a search's snapshot, which the search skips.
type postings struct {
	mu    sync.RWMutex // guards the following field
	lists [kb.Parts]map[string]*list
}

// list is the list of one term in one part.
type list struct {
	live   int     // how many of the records are still held
	places []place // in the order of their numbers. Only the end changes, by append.
}

// place is a record that has a term.
type place struct {
	number uint32
	count  uint16 // how often it has the term
	length uint16 // word forms in the part
}

func newPostings() *postings {
	p := &postings{}
	for i := range p.lists {
		p.lists[i] = map[string]*list{}
	}
	return p
}

// add adds a record, whose number is higher than all before.
func (p *postings) add(number int, found recordWords) {
	lengths := found.lengths()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, terms := range found.parts {
		for form, count := range formCounts(terms) {
			l := p.lists[i][form]
			if l == nil {
				l = &list{}
				p.lists[i][form] = l
			}
			l.live++
			l.places = append(l.places, place{uint32(number), clip(count), clip(lengths[i])})
		}
	}
}

// forget subtracts a record from the counts of its lists. The lists still contain it.
func (p *postings) forget(found recordWords) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, terms := range found.parts {
		for form := range formCounts(terms) {
			p.lists[i][form].live--
		}
	}
}

func formCounts(terms []kb.Term) map[string]int {
	n := map[string]int{}
	for _, t := range terms {
		for _, form := range t.Forms {
			n[form]++
		}
	}
	return n
}

func clip(n int) uint16 { return uint16(min(n, math.MaxUint16)) }

func (p *postings) find(part int, term string) list {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if l := p.lists[part][term]; l != nil {
		return *l
	}
	return list{}
}

// renumbered returns new postings with the new numbers of records, in the order of the old ones. It omits records without
// one.
func (p *postings) renumbered(numbers map[uint32]uint32) *postings {
	next := newPostings()
	for i, lists := range p.lists {
		for term, old := range lists {
			if old.live == 0 {
				continue
			}
			l := &list{live: old.live, places: make([]place, 0, old.live)}
			for _, at := range old.places {
				if number, ok := numbers[at.number]; ok {
					at.number = number
					l.places = append(l.places, at)
				}
			}
			next.lists[i][term] = l
		}
	}
	return next
}

const batchSize = 4000 // how many records are analyzed at once, and so bounds the memory that this takes

// write adds the words of some entries, which get their numbers and lengths, and removes those of
// others. Searches see the new ones after the next publish. If ctx ends, nothing has changed.
func (x *Index) write(ctx context.Context, put, gone []*entry) error {
	added := 0
	for some := range slices.Chunk(put, batchSize) {
		if err := ctx.Err(); err != nil {
			x.forget(put[:added])
			return err
		}
		found := analyze(x.ranker, some)
		for i, e := range some {
			e.number, e.lengths = x.numbers, found[i].lengths()
			x.numbers++
			x.postings.add(e.number, found[i])
		}
		x.words.add(found, 1)
		added += len(some)
	}
	x.forget(gone)
	return nil
}

func (x *Index) forget(entries []*entry) {
	for some := range slices.Chunk(entries, batchSize) {
		found := analyze(x.ranker, some)
		for _, one := range found {
			x.postings.forget(one)
		}
		x.words.add(found, -1)
	}
}

const leastRoom = 1000 // how many numbers of removed records there may always be

// tidy gives the entries new numbers if most numbers are of removed records. Snapshots keep
// the old postings and entries.
func (x *Index) tidy(entries map[string]*entry) {
	if x.numbers <= 2*len(entries)+leastRoom {
		return
	}
	live := slices.SortedFunc(maps.Values(entries), func(a, b *entry) int { return a.number - b.number })
	numbers := map[uint32]uint32{}
	for i, e := range live {
		numbers[uint32(e.number)] = uint32(i)
		moved := *e
		moved.number = i
		entries[e.record.ID] = &moved
	}
	x.numbers = len(live)
	x.postings = x.postings.renumbered(numbers)
}

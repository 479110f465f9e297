package local

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	"voicegw/backends/kb"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// Apply implements kb.Index. Only one Apply runs at a time; others wait.
func (x *Index) Apply(ctx context.Context, b kb.Batch) error {
	for i := range b.Upsert {
		if err := b.Upsert[i].Check(); err != nil {
			return err
		}
	}
	s, err := x.begin()
	if err != nil {
		return err
	}
	defer x.end(s)
	x.applying.Lock()
	defer x.applying.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	x.mu.Lock()
	held, dimensions := x.current.entries, x.current.dimensions()
	x.mu.Unlock()

	next := maps.Clone(held)
	for _, id := range b.Delete {
		delete(next, id)
	}
	fresh := x.fresh(b, held)
	maps.Copy(next, fresh)
	x.embed(ctx, fresh, b.WordsOnly, dimensions)

	change := change{put: map[string]*entry{}}
	for id, e := range fresh {
		if old := held[id]; old == nil || old.hash != e.hash {
			change.put[id] = e
		}
	}
	for _, id := range b.Delete {
		if held[id] != nil && next[id] == nil {
			change.drop = append(change.drop, id)
		}
	}
	if err := x.store.write(ctx, change, held, next); err != nil {
		return fmt.Errorf("kb/local: %w", err)
	}
	return x.publish(next)
}

// fresh makes an entry of every record of the batch. It reuses the vector of the entry held
// before if the embedded text is the same.
func (x *Index) fresh(b kb.Batch, held map[string]*entry) map[string]*entry {
	fresh := make(map[string]*entry, len(b.Upsert))
	for i := range b.Upsert {
		rec := b.Upsert[i]
		e := newEntry(rec)
		if old := held[rec.ID]; old != nil {
			if old.embeds == e.embeds {
				e.vector = old.vector
			}
			if old.hash == e.hash {
				e.lengths = old.lengths
			}
		}
		fresh[rec.ID] = e
	}
	return fresh
}

func newEntry(rec kb.Record) *entry {
	return &entry{record: rec, hash: rec.Hash(), embeds: hashText(rec.EmbeddingText()), updated: rec.LastUpdated.UnixMilli()}
}

// embed computes vectors for the entries that have none. Entries that the Embedder cannot
// embed stay without a vector.
func (x *Index) embed(ctx context.Context, fresh map[string]*entry, wordsOnly bool, dimensions int) {
	if x.options.Embedder == nil || wordsOnly {
		return
	}
	var entries []*entry
	var texts []string
	for _, e := range fresh {
		if e.vector == nil {
			entries = append(entries, e)
			texts = append(texts, e.record.EmbeddingText())
		}
	}
	if len(texts) == 0 {
		return
	}
	vectors := x.load.Records(ctx, texts, dimensions)
	if vectors == nil {
		return
	}
	for i, e := range entries {
		e.vector = normalized(vectors[i])
	}
}

// analyze finds the words of the entries, on two goroutines.
func analyze(ranker *kb.Ranker, entries []*entry) []recordWords {
	out := make([]recordWords, len(entries))
	analyzer, fixed := ranker.Words()
	var wg sync.WaitGroup
	for part := range 2 {
		wg.Go(func() {
			reader := analyzer.NewReader(fixed)
			for i := part; i < len(entries); i += 2 {
				rec := &entries[i].record
				text := kb.Plain(rec.Text)
				in := reader.Language(rec.Title + "\n" + text)
				out[i] = recordWords{in: in, title: reader.Terms(rec.Title, in, true),
					tags: reader.Terms(strings.Join(rec.Tags, " "), in, true), text: reader.Terms(text, in, false)}
			}
		})
	}
	wg.Wait()
	return out
}

package local

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"

	"voicegw/internal/backends/kb"
)

// Apply implements kb.Index. Only one Apply runs at a time; others wait.
func (x *Index) Apply(ctx context.Context, b kb.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if _, err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
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

	var put, gone []*entry
	for id, e := range fresh {
		if old := held[id]; old == nil || old.hash != e.hash {
			put = append(put, e)
		}
	}
	for id, old := range held {
		if e := next[id]; e == nil || e.hash != old.hash {
			gone = append(gone, old)
		}
	}
	if err := x.write(ctx, put, gone); err != nil {
		return fmt.Errorf("kb/local: %w", err)
	}
	x.tidy(next)
	x.publish(next)
	return nil
}

// fresh makes an entry of every record of the batch. It reuses the vector of the entry held
// before if the embedded text is the same.
func (x *Index) fresh(b kb.Batch, held map[string]*entry) map[string]*entry {
	fresh := make(map[string]*entry, len(b.Upsert))
	for i := range b.Upsert {
		rec := b.Upsert[i]
		e := &entry{record: rec, hash: rec.Hash(), embeds: sha256.Sum256([]byte(rec.EmbeddingText())), updated: rec.LastUpdated.UnixMilli()}
		if old := held[rec.ID]; old != nil {
			if old.embeds == e.embeds {
				e.vector = old.vector
			}
			if old.hash == e.hash {
				e.number, e.lengths = old.number, old.lengths
			}
		}
		fresh[rec.ID] = e
	}
	return fresh
}

// embed computes vectors for the entries that have none. Entries that the Embedder cannot embed stay without a vector.
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
	var wg sync.WaitGroup
	for part := range 2 {
		wg.Go(func() {
			reader := ranker.NewReader()
			for i := part; i < len(entries); i += 2 {
				out[i].in, out[i].parts = reader.Record(&entries[i].record)
			}
		})
	}
	wg.Wait()
	return out
}

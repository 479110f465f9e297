package kb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Apply implements Index. It writes the new records in parts, then removes the old ones. After an error the first
// parts remain, and another call completes the change.
func (x *Qdrant) Apply(ctx context.Context, b Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := x.begin(); err != nil {
		return err
	}
	defer x.calls.Done()
	put := map[string]int{}
	for i := range b.Upsert {
		put[b.Upsert[i].ID] = i // the last one counts
	}
	var records []Record
	for i := range b.Upsert {
		if put[b.Upsert[i].ID] == i {
			records = append(records, b.Upsert[i])
		}
	}
	for some := range slices.Chunk(records, pointsChunk) {
		if err := x.upsert(ctx, some, b.WordsOnly); err != nil {
			return err
		}
	}
	var gone []string
	for _, id := range b.Delete {
		if _, again := put[id]; !again {
			gone = append(gone, pointID(id))
		}
	}
	for some := range slices.Chunk(gone, 10*pointsChunk) {
		if err := x.client.call(ctx, http.MethodPost, x.path+"/points/delete?wait=true", object{"points": some}, nil); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (x *Qdrant) upsert(ctx context.Context, records []Record, wordsOnly bool) error {
	dense := make([][]float32, len(records))
	if x.options.Embedder != nil {
		if err := x.embed(ctx, records, dense, wordsOnly); err != nil {
			return err
		}
	}
	points := make([]object, len(records))
	for i := range records {
		rec := &records[i]
		data, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("qdrant: %s: %w", rec.ID, err)
		}
		vectors := object{vectorWords: sparseRecord(x.ranker, rec)}
		if dense[i] != nil {
			vectors[vectorDense] = dense[i]
		}
		points[i] = object{
			"id": pointID(rec.ID), "vector": vectors,
			"payload": qdrantPayload{
				ID: rec.ID, Title: rec.Title, Namespace: string(rec.Namespace), Type: string(rec.Type), Tags: rec.Tags,
				Authors: rec.Authors, Categories: rec.Categories,
				Updated: rec.LastUpdated.UnixMilli(), Hash: rec.Hash(), Embeds: hashText(rec.EmbeddingText()),
				Complete: dense[i] != nil, Record: string(data),
			},
		}
	}
	return x.client.call(ctx, http.MethodPut, x.path+"/points?wait=true", object{"points": points}, nil)
}

// embed sets the vectors of the records: the previous one if the text is the same, otherwise the Embedder's, or none if
// the Embedder fails.
func (x *Qdrant) embed(ctx context.Context, records []Record, dense [][]float32, wordsOnly bool) error {
	ids := make([]string, len(records))
	for i := range records {
		ids[i] = records[i].ID
	}
	points, err := x.retrieve(ctx, ids, []string{fieldID, fieldEmbeds}, true)
	if err != nil {
		return err
	}
	before := map[string]qdrantPoint{}
	for _, p := range points {
		before[p.Payload.ID] = p
	}
	var texts []string
	var want []int
	for i := range records {
		text := records[i].EmbeddingText()
		old := before[records[i].ID]
		if len(old.Vector.Dense) == x.dimensions && old.Payload.Embeds == hashText(text) {
			dense[i] = old.Vector.Dense
			continue
		}
		texts, want = append(texts, text), append(want, i)
	}
	if wordsOnly || len(texts) == 0 {
		return nil
	}
	for j, v := range x.load.Records(ctx, texts, x.dimensions) {
		dense[want[j]] = v
	}
	return nil
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

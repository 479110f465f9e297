package kb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"

	"voicegw/internal/bounded"
)

// pointID returns the UUID of a record's point, because Qdrant accepts no other names. It is a hash of the id in the
// form of version 8 (RFC 9562, section 5.8).
func pointID(id string) string {
	sum := sha256.Sum256([]byte("voicegw/kb " + id))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

type qdrantPoint struct {
	Score   float64       `json:"score"`
	Payload qdrantPayload `json:"payload"`
	Vector  struct {
		Dense []float32 `json:"dense"`
	} `json:"vector"`
}

type qdrantPayload struct {
	ID         string   `json:"id"`
	Title      string   `json:"title,omitempty"`
	Namespace  string   `json:"namespace,omitempty"`
	Type       string   `json:"type,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	Authors    []string `json:"authors,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Updated    int64    `json:"updated,omitempty"`
	Hash       string   `json:"hash,omitempty"`
	Embeds     string   `json:"embeds,omitempty"`
	Complete   bool     `json:"complete"`
	Record     string   `json:"record,omitempty"`
}

type sparse struct {
	Indices []uint32  `json:"indices"`
	Values  []float32 `json:"values"`
}

// The constants of BM25, as in package local, and the assumed mean lengths.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

var means = [Parts]float64{4, 4, 60}

// wholeWord is the weight of a whole word in addition to its stem. A query with the same spelling, apart from accents,
// finds it even if the languages differ.
const wholeWord = 0.4

// sparseRecord returns the part of a record's BM25 that does not depend on other records.
func sparseRecord(ranker *Ranker, rec *Record) sparse {
	_, parts := ranker.NewReader().Record(rec)
	values := map[uint32]float64{}
	for part, terms := range parts {
		counts := map[string]float64{}
		for _, t := range terms {
			for _, form := range t.Forms {
				counts[form]++
			}
			if !slices.Contains(t.Forms, t.Surface) {
				counts[t.Surface] += wholeWord
			}
		}
		norm := bm25K1 * (1 - bm25B + bm25B*float64(len(terms))/means[part])
		for form, tf := range counts {
			values[hashStem(form)] += Weights[part] * tf * (bm25K1 + 1) / (tf + norm)
		}
	}
	return sparseOf(values)
}

func sparseOf(values map[uint32]float64) sparse {
	out := sparse{Indices: []uint32{}, Values: []float32{}}
	for _, index := range slices.Sorted(maps.Keys(values)) {
		out.Indices = append(out.Indices, index)
		out.Values = append(out.Values, float32(values[index]))
	}
	return out
}

// weakWord is the weight of a possible stop word, synonym that of a synonym.
const weakWord, synonym = 0.25, 0.8

// sparseQuery returns the weights of a question's terms in every language. The first term with a hash counts.
func sparseQuery(ranker *Ranker, text string, synonyms *Synonyms) sparse {
	values := map[uint32]float64{}
	add := func(term string, weight float64) {
		if index := hashStem(term); term != "" && values[index] == 0 {
			values[index] = weight
		}
	}
	for _, asked := range ranker.Question(text, Languages()) {
		weight := 1.0
		if asked.Weak {
			weight = weakWord
		}
		for _, term := range slices.Concat(asked.Forms, asked.Surfaces) {
			add(term, weight)
		}
		for _, other := range synonyms.Words(asked.Surfaces[0]) {
			add(other, synonym)
			for _, language := range Languages() {
				add(ranker.Stem(other, language), synonym)
			}
		}
	}
	return sparseOf(values)
}

func hashStem(stem string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(stem)) // it never fails
	return h.Sum32()
}

// filterOf returns the query's filter in the server's form; nil means no filter.
func filterOf(q *Query) object {
	must := slices.Concat(anyOf(fieldNamespace, q.Namespaces), anyOf(fieldType, q.Types), anyOf(fieldAuthors, q.Authors),
		anyOf(fieldCategories, q.Categories))
	for _, tag := range NormalizeTags(q.Tags) {
		must = append(must, object{"key": fieldTags, "match": object{"value": tag}})
	}
	between := object{}
	from, to := q.Range()
	if !q.From.IsZero() {
		between["gte"] = from
	}
	if !q.To.IsZero() {
		between["lte"] = to
	}
	if len(between) > 0 {
		must = append(must, object{"key": fieldUpdated, "range": between})
	}
	if len(must) == 0 {
		return nil
	}
	return object{"must": must}
}

// anyOf matches points with at least one of the values; without values it matches all points.
func anyOf[T ~string](key string, values []T) []object {
	if len(values) == 0 {
		return nil
	}
	return []object{{"key": key, "match": object{"any": values}}}
}

// rankTo is the number of requested hits in a ranking. It exceeds Depth, so that ids decide between equal scores.
const rankTo = 4 * Depth

// rankings requests the best hits by words and, with a vector, by vectors.
func (x *Qdrant) rankings(ctx context.Context, q *Query, vector []float32) (wordings []Wording, near []Ranked,
	titles map[string]string, err error) {
	filter := filterOf(q)
	var synonyms *Synonyms
	if x.options.Synonyms != nil {
		synonyms = x.options.Synonyms()
	}
	wordings = Wordings(q, synonyms)
	var searches []object
	var into []*[]Ranked
	ask := func(query any, using string, to *[]Ranked) object {
		search := object{"query": query, "using": using, "limit": rankTo,
			"with_payload": object{"include": []string{fieldID, fieldTitle}}}
		if filter != nil {
			search["filter"] = filter
		}
		searches, into = append(searches, search), append(into, to)
		return search
	}
	for i := range wordings {
		if terms := sparseQuery(x.ranker, wordings[i].Text, synonyms); len(terms.Indices) > 0 {
			ask(terms, vectorWords, &wordings[i].Ranked)
		}
	}
	if vector != nil {
		ask(vector, vectorDense, &near)["score_threshold"] = math.SmallestNonzeroFloat32
	}
	if len(searches) == 0 {
		return nil, nil, nil, ctx.Err()
	}
	var answers []struct {
		Points []qdrantPoint `json:"points"`
	}
	if err := x.client.call(ctx, http.MethodPost, x.path+"/points/query/batch", object{"searches": searches}, &answers); err != nil {
		return nil, nil, nil, err
	}
	if len(answers) != len(searches) {
		return nil, nil, nil, fmt.Errorf("qdrant: %d answers for %d searches", len(answers), len(searches))
	}
	titles = map[string]string{}
	for i, answer := range answers {
		for _, p := range answer.Points {
			if p.Score > 0 && p.Payload.ID != "" {
				*into[i] = append(*into[i], Ranked{ID: p.Payload.ID, Score: p.Score, Cover: 1}) // unknown
				titles[p.Payload.ID] = p.Payload.Title
			}
		}
		*into[i] = Best(*into[i])
	}
	for i := range near {
		near[i].Score = min(near[i].Score, 1) // after rounding to float32
	}
	return wordings, near, titles, nil
}

func (x *Qdrant) fetch(ctx context.Context, ids []string) (map[string]Record, error) {
	points, err := x.retrieve(ctx, ids, []string{fieldID, fieldRecord}, false)
	if err != nil {
		return nil, err
	}
	records := map[string]Record{}
	for _, p := range points {
		rec, err := readRecord(p.Payload.Record)
		if err != nil {
			return nil, err
		}
		records[rec.ID] = rec
	}
	return records, nil
}

func readRecord(data string) (Record, error) {
	decoder := json.NewDecoder(strings.NewReader(data))
	decoder.UseNumber()
	var rec Record
	if err := decoder.Decode(&rec); err != nil {
		return rec, fmt.Errorf("%w: %w", errPayload, err)
	}
	rec.Normalize()
	return rec, nil
}

// pointsChunk is the number of points in a request. With vectors of 3,072 numbers they have about 4 MB; the server accepts
// 32.
const pointsChunk = 100

// chunkOf returns the number of points with vectors in an answer, within its bound on elements.
func chunkOf(dimensions int) int {
	return max(1, min(pointsChunk, (bounded.DefaultElements-1000)/(dimensions+20)))
}

func (x *Qdrant) retrieve(ctx context.Context, ids []string, fields []string, dense bool) ([]qdrantPoint, error) {
	var all []qdrantPoint
	most := pointsChunk
	if dense {
		most = chunkOf(x.dimensions)
	}
	for some := range slices.Chunk(ids, most) {
		names := make([]string, len(some))
		for i, id := range some {
			names[i] = pointID(id)
		}
		body := object{"ids": names, "with_payload": object{"include": fields}, "with_vector": false}
		if dense {
			body["with_vector"] = []string{vectorDense}
		}
		var points []qdrantPoint
		if err := x.client.call(ctx, http.MethodPost, x.path+"/points", body, &points); err != nil {
			return nil, err
		}
		all = append(all, points...)
	}
	return all, nil
}

const (
	// pageSize is the number of points in a request of scroll; maxPages bounds the requests.
	pageSize, maxPages = 1000, 500
)

// scroll calls do with some fields of each point that matches a filter; nil matches all. all is false if most requests
// were not enough.
func (x *Qdrant) scroll(ctx context.Context, filter object, fields []string, most int, do func(qdrantPoint)) (all bool, err error) {
	body := object{"limit": pageSize, "with_vector": false, "with_payload": object{"include": fields}}
	if filter != nil {
		body["filter"] = filter
	}
	for range most {
		var page struct {
			Points []qdrantPoint   `json:"points"`
			Next   json.RawMessage `json:"next_page_offset"`
		}
		if err := x.client.call(ctx, http.MethodPost, x.path+"/points/scroll", body, &page); err != nil {
			return false, err
		}
		for _, p := range page.Points {
			do(p)
		}
		if len(page.Next) == 0 || string(page.Next) == "null" {
			return true, nil
		}
		body["offset"] = page.Next
	}
	return false, nil
}

// Held implements Index. It requests every point.
func (x *Qdrant) Held(ctx context.Context) (map[string]Held, error) {
	if err := x.begin(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	held := map[string]Held{}
	all, err := x.scroll(ctx, nil, []string{fieldID, fieldHash, fieldComplete}, maxPages, func(p qdrantPoint) {
		held[p.Payload.ID] = Held{Hash: p.Payload.Hash, Complete: p.Payload.Complete || x.options.Embedder == nil}
	})
	switch {
	case err != nil:
		return nil, err
	case !all:
		return nil, fmt.Errorf("qdrant: the collection has more than %d points", maxPages*pageSize)
	}
	return held, nil
}

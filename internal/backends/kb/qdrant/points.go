package qdrant

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

	"voicegw/internal/backends/kb"
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

type point struct {
	Score   float64 `json:"score"`
	Payload payload `json:"payload"`
	Vector  struct {
		Dense []float32 `json:"dense"`
	} `json:"vector"`
}

type payload struct {
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

var means = [kb.Parts]float64{4, 4, 60}

// wholeWord is the weight of a whole word in addition to its stem. A query with the same spelling, apart from accents,
// finds it even if the languages differ.
const wholeWord = 0.4

// sparseRecord returns the part of a record's BM25 that does not depend on other records.
func sparseRecord(ranker *kb.Ranker, rec *kb.Record) sparse {
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
			values[hashStem(form)] += kb.Weights[part] * tf * (bm25K1 + 1) / (tf + norm)
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
func sparseQuery(ranker *kb.Ranker, text string, synonyms *kb.Synonyms) sparse {
	values := map[uint32]float64{}
	add := func(term string, weight float64) {
		if index := hashStem(term); term != "" && values[index] == 0 {
			values[index] = weight
		}
	}
	for _, asked := range ranker.Question(text, kb.Languages()) {
		weight := 1.0
		if asked.Weak {
			weight = weakWord
		}
		for _, term := range slices.Concat(asked.Forms, asked.Surfaces) {
			add(term, weight)
		}
		for _, other := range synonyms.Words(asked.Surfaces[0]) {
			add(other, synonym)
			for _, language := range kb.Languages() {
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
func filterOf(q *kb.Query) object {
	must := slices.Concat(anyOf(payloadNamespace, q.Namespaces), anyOf(payloadType, q.Types), anyOf(payloadAuthors, q.Authors),
		anyOf(payloadCategories, q.Categories))
	for _, tag := range kb.NormalizeTags(q.Tags) {
		must = append(must, object{"key": payloadTags, "match": object{"value": tag}})
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
		must = append(must, object{"key": payloadUpdated, "range": between})
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

// rankTo is the number of requested hits in a ranking. It exceeds kb.Depth, so that ids decide between equal scores.
const rankTo = 4 * kb.Depth

// rankings requests the best hits by words and, with a vector, by vectors.
func (x *Index) rankings(ctx context.Context, q *kb.Query, vector []float32) (wordings []kb.Wording, near []kb.Ranked,
	titles map[string]string, err error) {
	filter := filterOf(q)
	var synonyms *kb.Synonyms
	if x.options.Synonyms != nil {
		synonyms = x.options.Synonyms()
	}
	wordings = kb.Wordings(q, synonyms)
	var searches []object
	var into []*[]kb.Ranked
	ask := func(query any, using string, to *[]kb.Ranked) object {
		search := object{"query": query, "using": using, "limit": rankTo,
			"with_payload": object{"include": []string{payloadID, payloadTitle}}}
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
		Points []point `json:"points"`
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
				*into[i] = append(*into[i], kb.Ranked{ID: p.Payload.ID, Score: p.Score, Cover: 1}) // unknown
				titles[p.Payload.ID] = p.Payload.Title
			}
		}
		*into[i] = kb.Best(*into[i])
	}
	for i := range near {
		near[i].Score = min(near[i].Score, 1) // after rounding to float32
	}
	return wordings, near, titles, nil
}

func (x *Index) fetch(ctx context.Context, ids []string) (map[string]kb.Record, error) {
	points, err := x.retrieve(ctx, ids, []string{payloadID, payloadRecord}, false)
	if err != nil {
		return nil, err
	}
	records := map[string]kb.Record{}
	for _, p := range points {
		rec, err := readRecord(p.Payload.Record)
		if err != nil {
			return nil, err
		}
		records[rec.ID] = rec
	}
	return records, nil
}

func readRecord(data string) (kb.Record, error) {
	decoder := json.NewDecoder(strings.NewReader(data))
	decoder.UseNumber()
	var rec kb.Record
	if err := decoder.Decode(&rec); err != nil {
		return rec, fmt.Errorf("%w: %w", errPayload, err)
	}
	rec.Normalize()
	return rec, nil
}

// chunk is the number of points in a request. With vectors of 3,072 numbers they have about 4 MB; the server accepts
// 32.
const chunk = 100

// chunkOf returns the number of points with vectors in an answer, within its bound on elements.
func chunkOf(dimensions int) int {
	return max(1, min(chunk, (bounded.DefaultElements-1000)/(dimensions+20)))
}

func (x *Index) retrieve(ctx context.Context, ids []string, fields []string, dense bool) ([]point, error) {
	var all []point
	most := chunk
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
		var points []point
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
func (x *Index) scroll(ctx context.Context, filter object, fields []string, most int, do func(point)) (all bool, err error) {
	body := object{"limit": pageSize, "with_vector": false, "with_payload": object{"include": fields}}
	if filter != nil {
		body["filter"] = filter
	}
	for range most {
		var page struct {
			Points []point         `json:"points"`
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

// Held implements kb.Index. It requests every point.
func (x *Index) Held(ctx context.Context) (map[string]kb.Held, error) {
	if err := x.begin(); err != nil {
		return nil, err
	}
	defer x.calls.Done()
	held := map[string]kb.Held{}
	all, err := x.scroll(ctx, nil, []string{payloadID, payloadHash, payloadComplete}, maxPages, func(p point) {
		held[p.Payload.ID] = kb.Held{Hash: p.Payload.Hash, Complete: p.Payload.Complete || x.options.Embedder == nil}
	})
	switch {
	case err != nil:
		return nil, err
	case !all:
		return nil, fmt.Errorf("qdrant: the collection has more than %d points", maxPages*pageSize)
	}
	return held, nil
}

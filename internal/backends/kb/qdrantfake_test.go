package kb_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is the part of a Qdrant server that this package uses, in the forms of https://api.qdrant.tech (read 2026-11-20):
// it refuses unknown fields, vectors of a wrong size and other requests that the server refuses, counts idf over all
// points like the server over a shard, and compares vectors exactly. Points with equal scores are in the order of their
// UUIDs.
type fake struct {
	*httptest.Server
	key string // required in each request, unless empty

	mu          sync.Mutex
	collections map[string]*fakeCollection
	requests    []string
	disturb     func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

type fakeCollection struct {
	size    int // of the dense vector; 0 without one
	params  map[string]any
	indexes map[string]string
	points  map[string]*fakePoint
}

type fakePoint struct {
	dense   []float32
	words   map[uint32]float32
	payload map[string]any
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{collections: map[string]*fakeCollection{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// qdrantRefusal is an error of the server.
type qdrantRefusal struct {
	status int
	text   string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	if f.disturb != nil && f.disturb(w, r) {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var result any
	refused := &qdrantRefusal{http.StatusForbidden, "Invalid API key or JWT"}
	if f.key == "" || r.Header.Get("Api-Key") == f.key {
		result, refused = f.handle(r, body)
	}
	if refused != nil {
		w.WriteHeader(refused.status)
		answer(w, map[string]any{"status": map[string]any{"error": refused.text}, "time": 0.001})
		return
	}
	answer(w, map[string]any{"result": result, "status": "ok", "time": 0.001})
}

func answer(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

var fakePath = regexp.MustCompile(`^/collections/([^/]+)(/.*)?$`)

func (f *fake) handle(r *http.Request, body []byte) (any, *qdrantRefusal) {
	m := fakePath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return nil, &qdrantRefusal{404, ""}
	}
	c := f.collections[m[1]]
	operation := r.Method + " " + m[2]
	if operation == "PUT " {
		return f.create(m[1], body)
	}
	if c == nil {
		return nil, &qdrantRefusal{404, fmt.Sprintf("Not found: Collection `%s` doesn't exist!", m[1])}
	}
	if wait := r.URL.Query().Get("wait"); wait != "true" && slices.Contains([]string{"PUT /points", "POST /points/delete", "PUT /index"}, operation) {
		return nil, &qdrantRefusal{400, "the test wants wait=true: without it the change is not there when the request returns"}
	}
	switch operation {
	case "GET ":
		return map[string]any{"status": "green", "points_count": len(c.points), "config": map[string]any{"params": c.params}, "payload_schema": c.indexes}, nil
	case "DELETE ":
		delete(f.collections, m[1])
		return true, nil
	case "PUT /index":
		return c.index(body)
	case "PUT /points":
		return c.upsert(body)
	case "POST /points/delete":
		return c.remove(body)
	case "POST /points":
		return c.retrieve(body)
	case "POST /points/scroll":
		return c.scroll(body)
	case "POST /facet":
		return c.facet(body)
	case "POST /points/query/batch":
		return c.query(body)
	}
	return nil, &qdrantRefusal{404, ""}
}

func strict(body []byte, into any) *qdrantRefusal {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &qdrantRefusal{400, "Format error in JSON body: " + err.Error()}
	}
	return nil
}

func (f *fake) create(name string, body []byte) (any, *qdrantRefusal) {
	if f.collections[name] != nil {
		return nil, &qdrantRefusal{409, fmt.Sprintf("Wrong input: Collection `%s` already exists!", name)}
	}
	var req struct {
		Vectors map[string]struct {
			Size     int    `json:"size"`
			Distance string `json:"distance"`
		} `json:"vectors"`
		Sparse map[string]struct {
			Modifier string `json:"modifier"`
		} `json:"sparse_vectors"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	c := &fakeCollection{indexes: map[string]string{}, points: map[string]*fakePoint{}}
	for vector, v := range req.Vectors {
		if v.Size < 1 || v.Size > 65536 || v.Distance != "Cosine" {
			return nil, &qdrantRefusal{422, "Validation error in JSON body: [vectors." + vector + "]"}
		}
		c.size = v.Size
	}
	var params map[string]any
	if err := json.Unmarshal(body, &params); err != nil {
		panic(err)
	}
	c.params = params
	f.collections[name] = c
	return true, nil
}

func (c *fakeCollection) index(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Name   string `json:"field_name"`
		Schema string `json:"field_schema"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	c.indexes[req.Name] = req.Schema
	return done(), nil
}

func done() any { return map[string]any{"operation_id": 1, "status": "completed"} }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

type fakeSparse struct {
	Indices []uint32  `json:"indices"`
	Values  []float32 `json:"values"`
}

func (s *fakeSparse) words() (map[uint32]float32, *qdrantRefusal) {
	words := map[uint32]float32{}
	for i, n := range s.Indices {
		if i >= len(s.Values) {
			return nil, &qdrantRefusal{422, "Validation error: must be the same length as indices"}
		}
		words[n] = s.Values[i]
	}
	if len(words) != len(s.Values) {
		return nil, &qdrantRefusal{422, "Validation error: must be unique, and as many as values"}
	}
	return words, nil
}

func (c *fakeCollection) upsert(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Points []struct {
			ID     string `json:"id"`
			Vector struct {
				Dense []float32   `json:"dense"`
				Words *fakeSparse `json:"words"`
			} `json:"vector"`
			Payload map[string]any `json:"payload"`
		} `json:"points"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	if len(req.Points) == 0 {
		return nil, &qdrantRefusal{422, "Validation error in JSON body: [points] must not be empty"}
	}
	fresh := map[string]*fakePoint{}
	for _, p := range req.Points {
		if !uuid.MatchString(p.ID) {
			return nil, &qdrantRefusal{400, p.ID + " is not a valid point ID"}
		}
		if p.Vector.Dense != nil && len(p.Vector.Dense) != c.size {
			return nil, &qdrantRefusal{400, fmt.Sprintf("Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(p.Vector.Dense))}
		}
		point := &fakePoint{payload: p.Payload, dense: unit(p.Vector.Dense)}
		if p.Vector.Words != nil {
			words, no := p.Vector.Words.words()
			if no != nil {
				return nil, no
			}
			point.words = words
		}
		fresh[p.ID] = point
	}
	for id, p := range fresh {
		c.points[id] = p // replaces the old point and its vectors
	}
	return done(), nil
}

// unit normalizes a vector, as the server stores vectors compared by cosine.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := slices.Clone(v)
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

func (c *fakeCollection) remove(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Points []string `json:"points"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	for _, id := range req.Points {
		delete(c.points, id)
	}
	return done(), nil
}

type fakeInclude struct {
	Include []string `json:"include"`
}

// show is a point with the requested parts.
func (p *fakePoint) show(id string, fields fakeInclude, dense bool) map[string]any {
	payload := map[string]any{}
	for _, name := range fields.Include {
		if v, ok := p.payload[name]; ok {
			payload[name] = v
		}
	}
	out := map[string]any{"id": id, "payload": payload}
	if dense {
		vector := map[string]any{}
		if p.dense != nil {
			vector["dense"] = p.dense
		}
		out["vector"] = vector
	}
	return out
}

func (c *fakeCollection) retrieve(body []byte) (any, *qdrantRefusal) {
	var req struct {
		IDs     []string    `json:"ids"`
		Payload fakeInclude `json:"with_payload"`
		Vector  any         `json:"with_vector"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	found := []any{}
	for _, id := range req.IDs {
		if p := c.points[id]; p != nil {
			found = append(found, p.show(id, req.Payload, req.Vector != false))
		}
	}
	return found, nil
}

func (c *fakeCollection) ids() []string {
	ids := make([]string, 0, len(c.points))
	for id := range c.points {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (c *fakeCollection) scroll(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Filter  fakeFilter  `json:"filter"`
		Limit   int         `json:"limit"`
		Offset  string      `json:"offset"`
		Payload fakeInclude `json:"with_payload"`
		Vector  bool        `json:"with_vector"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	page := []any{}
	for _, id := range c.ids() {
		if id < req.Offset || !req.Filter.passes(c.points[id]) {
			continue
		}
		if len(page) == req.Limit {
			return map[string]any{"points": page, "next_page_offset": id}, nil
		}
		page = append(page, c.points[id].show(id, req.Payload, req.Vector))
	}
	return map[string]any{"points": page, "next_page_offset": nil}, nil
}

type fakeCondition struct {
	Key   string `json:"key"`
	Match *struct {
		Value string   `json:"value"`
		Any   []string `json:"any"`
	} `json:"match"`
	Range *struct {
		From *float64 `json:"gte"`
		To   *float64 `json:"lte"`
	} `json:"range"`
}

// holds evaluates the condition for one point: in a list, any value may match.
func (q *fakeCondition) holds(p *fakePoint) bool {
	value := p.payload[q.Key]
	if q.Match != nil && q.Match.Any != nil {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		return slices.ContainsFunc(list, func(v any) bool {
			text, ok := v.(string)
			return ok && slices.Contains(q.Match.Any, text)
		})
	}
	if q.Match != nil {
		if list, ok := value.([]any); ok {
			return slices.Contains(list, any(q.Match.Value))
		}
		return value == q.Match.Value
	}
	n, ok := value.(float64)
	return ok && (q.Range.From == nil || n >= *q.Range.From) && (q.Range.To == nil || n <= *q.Range.To)
}

type fakeFilter struct {
	Must []fakeCondition `json:"must"`
}

func (f fakeFilter) passes(p *fakePoint) bool {
	return !slices.ContainsFunc(f.Must, func(q fakeCondition) bool { return !q.holds(p) })
}

// facet counts the values of a keyword, which must be indexed.
func (c *fakeCollection) facet(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Key    string     `json:"key"`
		Limit  int        `json:"limit"`
		Filter fakeFilter `json:"filter"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	if c.indexes[req.Key] != "keyword" {
		return nil, &qdrantRefusal{400, "No appropriate index for faceting: `" + req.Key + "`"}
	}
	counts := map[string]int{}
	for _, id := range c.ids() {
		if list, ok := c.points[id].payload[req.Key].([]any); ok && req.Filter.passes(c.points[id]) {
			for _, v := range list {
				counts[v.(string)]++
			}
		}
	}
	hits := []any{}
	for value, n := range counts {
		if len(hits) < req.Limit {
			hits = append(hits, map[string]any{"value": value, "count": n})
		}
	}
	return map[string]any{"hits": hits}, nil
}

type fakeSearch struct {
	Query     json.RawMessage `json:"query"`
	Using     string          `json:"using"`
	Limit     int             `json:"limit"`
	Filter    fakeFilter      `json:"filter"`
	Payload   fakeInclude     `json:"with_payload"`
	Threshold *float64        `json:"score_threshold"`
}

func (c *fakeCollection) query(body []byte) (any, *qdrantRefusal) {
	var req struct {
		Searches []fakeSearch `json:"searches"`
	}
	if no := strict(body, &req); no != nil {
		return nil, no
	}
	var answers []any
	for _, search := range req.Searches {
		points, no := c.search(&search)
		if no != nil {
			return nil, no
		}
		answers = append(answers, map[string]any{"points": points})
	}
	return answers, nil
}

func (c *fakeCollection) search(search *fakeSearch) (any, *qdrantRefusal) {
	score, no := c.scorer(search)
	if no != nil {
		return nil, no
	}
	for _, condition := range search.Filter.Must {
		if c.indexes[condition.Key] == "" {
			return nil, &qdrantRefusal{400, "Index required but not found for \"" + condition.Key + "\""} // as in strict mode
		}
	}
	type scored struct {
		id    string
		score float64
	}
	var all []scored
	for _, id := range c.ids() {
		p := c.points[id]
		s, ok := score(p)
		if !ok || search.Threshold != nil && s < *search.Threshold {
			continue
		}
		if search.Filter.passes(p) {
			all = append(all, scored{id, s})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	points := []any{}
	for _, one := range all[:min(len(all), search.Limit)] {
		shown := c.points[one.id].show(one.id, search.Payload, false)
		shown["score"], shown["version"] = one.score, 1
		points = append(points, shown)
	}
	return points, nil
}

func (c *fakeCollection) scorer(search *fakeSearch) (func(*fakePoint) (float64, bool), *qdrantRefusal) {
	if search.Using == "dense" && c.size > 0 {
		var v []float32
		if no := strict(search.Query, &v); no != nil {
			return nil, no
		}
		if len(v) != c.size {
			return nil, &qdrantRefusal{400, fmt.Sprintf("Wrong input: Vector dimension error: expected dim: %d, got %d", c.size, len(v))}
		}
		v = unit(v)
		return func(p *fakePoint) (float64, bool) {
			sum := float32(0)
			for i := range p.dense {
				sum += p.dense[i] * v[i]
			}
			return float64(sum), p.dense != nil
		}, nil
	}
	if search.Using != "words" {
		return nil, &qdrantRefusal{400, "Wrong input: Not existing vector name error: " + search.Using}
	}
	var query fakeSparse
	if no := strict(search.Query, &query); no != nil {
		return nil, no
	}
	words, no := query.words()
	if no != nil {
		return nil, no
	}
	for n := range words { // the idf of the server's modifier
		with := 0.0
		for _, p := range c.points {
			if _, ok := p.words[n]; ok {
				with++
			}
		}
		words[n] *= float32(math.Log(1 + (float64(len(c.points))-with+0.5)/(with+0.5)))
	}
	return func(p *fakePoint) (float64, bool) {
		sum, any := 0.0, false
		for n, v := range words {
			if w, ok := p.words[n]; ok {
				sum, any = sum+float64(v*w), true
			}
		}
		return sum, any
	}, nil
}

// asked counts the requests that begin with the prefix.
func (f *fake) asked(prefix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

package sim

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

func postEmbeddings(h http.Handler, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Api-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestMeaning: texts about one subject are closer than texts about two, in vectors of every length.
func TestMeaning(t *testing.T) {
	for _, d := range []int{64, 256, 1536, 3072} {
		v := func(text string) []float32 { return Vector(text, d) }
		question := v("How much does a logo cost?")
		near, far := cosine(question, v("The price of a wordmark")), cosine(question, v("We are closed in December"))
		if near < far+0.15 {
			t.Errorf("%d: near %.3f, far %.3f", d, near, far)
		}
		if same := cosine(v("opening hours"), v("Opening Hours!")); same < 0.999 {
			t.Errorf("%d: the same words are %.3f apart", d, same)
		}
		if n := cosine(question, question); math.Abs(n-1) > 1e-5 {
			t.Errorf("%d: the length is %f", d, n)
		}
	}
	if len(Vector("the of and", 1)) != 1 || Vector("", 8)[0] != 1 {
		t.Error("a text without words has no direction")
	}
	if !slices.Equal(Vector("a file", 512), Vector("a file", 512)) {
		t.Error("the same text has two vectors")
	}
}

// TestShortening: the beginning of a long vector is the short one, except for its length.
func TestShortening(t *testing.T) {
	long, short := Vector("music festival on the beach", 1536), Vector("music festival on the beach", 256)
	if got := cosine(long[:256], short) / math.Sqrt(cosine(long[:256], long[:256])); got < 0.9999 {
		t.Errorf("%.4f", got)
	}
}

func TestEmbeddingsRefusals(t *testing.T) {
	h := New(wire.Options{})
	long := strings.Repeat("word ", 7000)
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 2049), ",")
	for _, c := range []struct {
		body   string
		status int
		text   string
	}{
		{`{`, 400, "could not parse"},
		{`[]`, 400, "wrong type"},
		{`{"input":"x"}`, 400, "you must provide a model"},
		{`{"model":"gpt-5","input":"x"}`, 404, "model_not_found"},
		{`{"model":"text-embedding-3-small"}`, 400, "Missing required parameter: 'input'."},
		{`{"model":"text-embedding-3-small","input":null}`, 400, "Missing required parameter: 'input'."},
		{`{"model":"text-embedding-3-small","input":""}`, 400, "cannot be an empty string"},
		{`{"model":"text-embedding-3-small","input":[]}`, 400, "empty array"},
		{`{"model":"text-embedding-3-small","input":[[]]}`, 400, "empty array"},
		{`{"model":"text-embedding-3-small","input":{}}`, 400, "'$.input' is invalid"},
		{`{"model":"text-embedding-3-small","input":["a",1]}`, 400, "'$.input' is invalid"},
		{`{"model":"text-embedding-3-small","input":"` + long + `"}`, 400, "maximum context length is 8192"},
		{`{"model":"text-embedding-3-small","input":[` + many + `]}`, 400, "array_above_max_length"},
		{`{"model":"text-embedding-3-small","input":"x","encoding_format":"hex"}`, 400, "'float' and 'base64'"},
		{`{"model":"text-embedding-3-small","input":"x","dimensions":0}`, 400, "below minimum"},
		{`{"model":"text-embedding-3-small","input":"x","dimensions":1537}`, 400, "less than or equal to 1536"},
		{`{"model":"text-embedding-ada-002","input":"x","dimensions":100}`, 400, "does not support specifying dimensions"},
	} {
		w := postEmbeddings(h, "/v1/embeddings", "k", c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%.80s: %d %.300s", c.body, w.Code, w.Body)
		}
	}
	if w := postEmbeddings(h, "/v1/embeddings", "expired", `{}`); w.Code != 401 {
		t.Errorf("an expired key: %d", w.Code)
	}
	if w := postEmbeddings(h, "/openai/deployments/ours/embeddings", "k", `{"input":"x"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"model":"ours"`) {
		t.Errorf("a deployment: %d %.100s", w.Code, w.Body)
	}
}

// TestOfficialClient: the official client reads floats, base64 and tokens.
func TestOfficialClient(t *testing.T) {
	faults, err := scenario.ParseFaults("f", []byte("faults: [{at: connect, api: embeddings, connection: 1, do: http_error, code: 500, for: 1ms}]"))
	if err != nil {
		t.Fatal(err)
	}
	o := wire.Options{Faults: faults, Stats: &wire.Stats{}}
	srv := httptest.NewServer(New(o))
	defer srv.Close()
	hc := srv.Client()
	defer hc.CloseIdleConnections()
	c := openaigo.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("k"), option.WithHTTPClient(hc))

	texts := []string{"opening hours", "a cup of tea"}
	got, err := c.Embeddings.New(context.Background(), openaigo.EmbeddingNewParams{
		Model: "text-embedding-3-large", Input: openaigo.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, Dimensions: openaigo.Int(512),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		want := Vector(text, 512)
		if d := got.Data[i]; d.Index != int64(i) || len(d.Embedding) != 512 || math.Abs(d.Embedding[7]-float64(want[7])) > 1e-7 {
			t.Errorf("%s: index %d, %d numbers, the eighth %g", text, d.Index, len(d.Embedding), d.Embedding[7])
		}
	}
	if got.Usage.PromptTokens != 3+6 || o.Stats.Embedded.Load() != 2 || o.Stats.Requests.Load() != 2 {
		t.Errorf("%+v, %d texts in %d requests", got.Usage, o.Stats.Embedded.Load(), o.Stats.Requests.Load())
	}

	var raw []byte
	_, err = c.Embeddings.New(context.Background(), openaigo.EmbeddingNewParams{
		Model: "text-embedding-3-small", Input: openaigo.EmbeddingNewParamsInputUnion{OfArrayOfTokens: []int64{3, 4}},
		EncodingFormat: openaigo.EmbeddingNewParamsEncodingFormatBase64,
	}, option.WithResponseBodyInto(&raw))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data []struct{ Embedding string }
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Data) != 1 {
		t.Fatalf("%v in %.200s", err, raw)
	}
	b, err := base64.StdEncoding.DecodeString(answer.Data[0].Embedding)
	if err != nil || len(b) != 4*1536 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	want := Vector("token3 token4 ", 1536)
	for i, f := range want {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])); got != f {
			t.Fatalf("number %d is %g, not %g", i, got, f)
		}
	}
}

func FuzzEmbeddingsRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"text-embedding-3-small","input":"x y z"}`, `{"model":"text-embedding-3-small","input":["x",""]}`, `{"model":"text-embedding-3-small","input":[1,2]}`,
		`{"model":"text-embedding-3-small","input":[[1],[2,3]],"dimensions":33,"encoding_format":"base64"}`, `{"input":{}}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, bad := parseEmbeddings(body, "", false)
		if bad != nil {
			if bad.Status < 400 || bad.Message == "" {
				t.Fatalf("%+v", bad)
			}
			return
		}
		if len(r.texts) == 0 || r.dimensions < 1 || r.dimensions > 3072 {
			t.Fatalf("%+v", r)
		}
		if v := Vector(r.texts[0], r.dimensions); math.Abs(cosine(v, v)-1) > 1e-4 {
			t.Fatal(fmt.Sprint(v))
		}
	})
}

func BenchmarkVector(b *testing.B) {
	text := strings.Repeat("The studio is open from nine to five on weekdays, and closed at weekends. ", 10)
	for b.Loop() {
		Vector(text, 1536)
	}
}

package qdrant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"voicegw/internal/backends/kb"
)

// The names in a collection.
const (
	vectorDense = "dense"
	vectorWords = "words"

	payloadID         = "id"
	payloadTitle      = "title"
	payloadNamespace  = "namespace"
	payloadType       = "type"
	payloadTags       = "tags"
	payloadAuthors    = "authors"
	payloadCategories = "categories"
	payloadUpdated    = "updated" // ms since 1970
	payloadHash       = "hash"
	payloadEmbeds     = "embeds"   // a hash of the dense vector's text
	payloadComplete   = "complete" // the point has a dense vector
	payloadRecord     = "record"   // the record as a JSON text, which preserves the digits of numbers
)

type object = map[string]any

func (x *Index) prepare(ctx context.Context) error {
	var info collectionInfo
	err := x.client.call(ctx, http.MethodGet, x.path, nil, &info)
	var refused *StatusError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return x.create(ctx)
	}
	if err != nil {
		return err
	}
	if err := x.check(&info); err != nil {
		return err
	}
	return x.indexPayload(ctx, info.Schema)
}

type collectionInfo struct {
	Config struct {
		Params struct {
			Vectors map[string]struct {
				Size     int    `json:"size"`
				Distance string `json:"distance"`
			} `json:"vectors"`
			Sparse map[string]struct {
				Modifier string `json:"modifier"`
			} `json:"sparse_vectors"`
		} `json:"params"`
	} `json:"config"`
	Schema map[string]json.RawMessage `json:"payload_schema"` // has the indexed fields of the payload
}

func (x *Index) check(info *collectionInfo) error {
	params := info.Config.Params
	if words, ok := params.Sparse[vectorWords]; !ok || words.Modifier != "idf" {
		return fmt.Errorf("%w: %q has no sparse vector %q with the modifier idf", ErrCollection, x.options.Collection, vectorWords)
	}
	if x.options.Embedder == nil {
		return nil
	}
	dense, ok := params.Vectors[vectorDense]
	switch {
	case !ok:
		return fmt.Errorf("%w: %q was made without an embedder and has no vector %q", ErrCollection, x.options.Collection, vectorDense)
	case dense.Distance != "Cosine":
		return fmt.Errorf("%w: the vectors of %q have the distance %s, not Cosine", ErrCollection, x.options.Collection, dense.Distance)
	}
	x.dimensions = dense.Size
	return nil
}

func (x *Index) create(ctx context.Context) error {
	vectors := object{}
	if x.options.Embedder != nil {
		probe, err := x.options.Embedder.Embed(ctx, []string{"how many numbers"})
		if err == nil {
			err = kb.CheckVectors(probe, 1)
		}
		if err != nil {
			return fmt.Errorf("qdrant: asking the embedder for the length of its vectors: %w", err)
		}
		x.dimensions = len(probe[0])
		vectors[vectorDense] = object{"size": x.dimensions, "distance": "Cosine"}
	}
	body := object{"vectors": vectors, "sparse_vectors": object{vectorWords: object{"modifier": "idf"}}}
	err := x.client.call(ctx, http.MethodPut, x.path, body, nil)
	var refused *StatusError
	if errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusBadRequest) {
		// Another gateway may just have created it.
		var info collectionInfo
		if x.client.call(ctx, http.MethodGet, x.path, nil, &info) == nil {
			err = x.check(&info)
		}
	}
	if err != nil {
		return err
	}
	return x.indexPayload(ctx, nil)
}

// indexPayload makes the server index the fields of filters. An older collection may lack some.
func (x *Index) indexPayload(ctx context.Context, indexed map[string]json.RawMessage) error {
	for field, schema := range map[string]string{
		payloadNamespace: "keyword", payloadType: "keyword", payloadTags: "keyword", payloadAuthors: "keyword",
		payloadCategories: "keyword",
		payloadUpdated:    "integer",
	} {
		if _, ok := indexed[field]; ok {
			continue
		}
		if err := x.client.call(ctx, http.MethodPut, x.path+"/index?wait=true",
			object{"field_name": field, "field_schema": schema}, nil); err != nil {
			return err
		}
	}
	return nil
}

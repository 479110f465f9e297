package config

import (
	"strings"
	"testing"
)

func TestKnowledgeBase(t *testing.T) {
	c := mustLoad(t, `
kb:
  path: knowledge
  embeddings: {base_url: https://api.example.com/v1, model: small, cache: vectors}
  qdrant: {url: http://localhost:6333}
`, []string{"VOICEGW_KB_EMBEDDINGS_API_KEY=k"})
	if c.KB.Path != "dir/knowledge" || c.KB.Embeddings.Cache != "dir/vectors" {
		t.Errorf("the paths %q and %q should be relative to the file's directory", c.KB.Path, c.KB.Embeddings.Cache)
	}
	if c.KB.Embeddings.APIKey.Reveal() != "k" || c.KB.Qdrant.Collection != "voicegw" {
		t.Errorf("got %+v", c.KB)
	}
}

// TestKnowledgeBaseProblems: a setting that requires another one is reported with its own key.
func TestKnowledgeBaseProblems(t *testing.T) {
	for name, tc := range map[string]struct{ value, where, want string }{
		"no model":      {"kb.embeddings.base_url=https://a.example/v1", "VOICEGW_KB_EMBEDDINGS_MODEL", "missing"},
		"no endpoint":   {"kb.embeddings.model=small", "VOICEGW_KB_EMBEDDINGS_BASE_URL", "missing"},
		"only a key":    {"kb.qdrant.api_key=secret", "VOICEGW_KB_QDRANT_URL", "missing"},
		"no URL":        {"kb.qdrant.url=localhost:6333", "--set", "whole URL"},
		"a socket":      {"kb.qdrant.url=ws://localhost:6333", "--set", "whole URL"},
		"a password":    {"kb.qdrant.url=http://u:secret@localhost", "--set", "password"},
		"no collection": {"kb.qdrant.collection=", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, value, _ := strings.Cut(tc.value, "=")
			_, _, err := Load(Source{Flags: []Flag{{"--set", key, value}}})
			if tc.want == "" {
				if err != nil {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.where) || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("the error is %v, want %s: %s", err, tc.where, tc.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

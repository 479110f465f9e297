package config

import "voicegw/config/setting"

// KB configures the knowledge base of the retrieval tools.
type KB struct {
	// Path is the folder of records; empty means the built-in, invented records.
	Path setting.Path `key:"path"`
	// Language is the language of all records, an ISO 639-1 code, or auto.
	Language string `key:"language" words:"auto,en,de,es,fr,it,pt,nl"`
	// Synonyms is a file of synonyms; it may be empty.
	Synonyms   setting.Path `key:"synonyms"`
	Embeddings Embeddings   `key:"embeddings"`
	Qdrant     Qdrant       `key:"qdrant"`
	// Namespaces lists the readers of namespaces. Everyone may read Studio and Public unless they have grants. Personal
	// needs grants.
	Namespaces Namespaces `key:"namespaces"`
}

// Namespaces holds the grants of each namespace.
type Namespaces struct {
	Studio   Grant `key:"studio"`
	Personal Grant `key:"personal"`
	Public   Grant `key:"public"`
}

// Grant lists the readers of a namespace: one list is enough, and "*" means everyone.
type Grant struct {
	Users  []string `key:"users"`
	Agents []string `key:"agents"`
	Scopes []string `key:"scopes"`
}

// Embeddings is an OpenAI-compatible endpoint that computes vectors. Without one, only
// words are compared.
type Embeddings struct {
	BaseURL string         `key:"base_url" is:"url"` // with its /v1
	APIKey  setting.Secret `key:"api_key"`
	Model   string         `key:"model"`
	// Cache is a file that keeps computed vectors, so that they are paid for only once.
	Cache setting.Path `key:"cache"`
}

// Qdrant is a server that holds the records' index instead of this process.
type Qdrant struct {
	URL        string         `key:"url" is:"url"`
	APIKey     setting.Secret `key:"api_key"`
	Collection string         `key:"collection"`
}

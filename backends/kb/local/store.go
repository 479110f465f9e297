package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"voicegw/backends/kb"
	"voicegw/backends/kb/internal/words"
)

// format is raised when the stored form changes; a folder of another format is rebuilt by the
// next Apply.
const format = "2"

// The fields of a document.
const (
	fieldTitle     = "title"
	fieldTags      = "tags"
	fieldText      = "text"
	fieldNamespace = "namespace"
	fieldType      = "type"
	fieldTag       = "tag"
	fieldRecord    = "record" // stored, only on disk
)

// batchSize bounds the documents of one segment, and so the memory that making it takes.
const batchSize = 4000

// store is a scorch index: the postings, in memory or in a folder.
type store struct {
	// Fixed after openStore.
	dir    string
	index  index.Index
	queue  *index.AnalysisQueue
	ranker *kb.Ranker
	words  *vocabulary

	// Guarded by Index.applying.
	loose    map[string]bool // ids in segments made of few documents
	segments int             // such segments
}

func openStore(dir string, ranker *kb.Ranker) (*store, error) {
	path := ""
	if dir != "" {
		path = filepath.Join(dir, "words")
		if err := prepare(dir, path); err != nil {
			return nil, err
		}
	}
	queue := index.NewAnalysisQueue(2)
	idx, err := scorch.NewScorch(scorch.Name, map[string]any{"path": path}, queue)
	if err == nil {
		err = idx.Open()
	}
	if err != nil {
		queue.Close()
		return nil, fmt.Errorf("opening the index in %q: %w", path, err)
	}
	return &store{dir: dir, index: idx, queue: queue, ranker: ranker, words: newVocabulary(), loose: map[string]bool{}}, nil
}

// prepare creates the folder, and empties an index that another version of this package wrote.
func prepare(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	stamp := filepath.Join(dir, "format")
	held, err := os.ReadFile(stamp)
	if err == nil && strings.TrimSpace(string(held)) == format {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(format+"\n"), 0o600)
}

func (s *store) close() error {
	err := s.index.Close()
	s.queue.Close()
	return err
}

func joinClose(err error, s *store) error { return errors.Join(err, s.close()) }

func (s *store) reader() (index.IndexReader, error) { return s.index.Reader() }

// stored is the stored form of a document on disk.
type stored struct {
	Record  kb.Record `json:"record"`
	Lengths lengths   `json:"lengths"`
}

// read returns the content of a folder; nothing for an index in memory.
func (s *store) read(ctx context.Context) (map[string]*entry, error) {
	entries := map[string]*entry{}
	if s.dir == "" {
		return entries, nil
	}
	reader, err := s.reader()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	ids, err := reader.DocIDReaderAll()
	if err != nil {
		return nil, err
	}
	defer func() { _ = ids.Close() }()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number, err := ids.Next()
		if err != nil || number == nil {
			return entries, err
		}
		id, err := reader.ExternalID(number)
		if err != nil {
			return nil, err
		}
		doc, err := reader.Document(id)
		if err != nil {
			return nil, err
		}
		if e := entryOf(doc); e != nil {
			entries[id] = e
		}
	}
}

// entryOf reads a stored document; nil if it is unreadable: the next Apply of its source puts it
// in again.
func entryOf(doc index.Document) *entry {
	var e *entry
	if doc == nil {
		return nil
	}
	doc.VisitFields(func(f index.Field) {
		if f.Name() != fieldRecord {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(string(f.Value())))
		decoder.UseNumber()
		var held stored
		if decoder.Decode(&held) != nil {
			return
		}
		held.Record.Normalize()
		e = newEntry(held.Record)
		e.lengths = held.Lengths
	})
	return e
}

// change is the effect of one write on the store.
type change struct {
	put  map[string]*entry
	drop []string
}

// write makes the change, in batches; entries get their lengths. Searches see nothing of it until
// the next publish.
func (s *store) write(ctx context.Context, c change, held, next map[string]*entry) error {
	puts := make([]*entry, 0, len(c.put))
	var olds []*entry // the entries that are replaced or removed
	for id, e := range c.put {
		puts = append(puts, e)
		if old := held[id]; old != nil {
			olds = append(olds, old)
		}
	}
	for _, id := range c.drop {
		olds = append(olds, held[id])
	}
	counted, err := s.batches(ctx, puts, c.drop, true)
	if err != nil {
		s.forget(puts[:counted])
		// A part of a failed write must not become visible: restore the previous content.
		return errors.Join(err, s.restore(c, held))
	}
	s.forget(olds)
	if s.dir == "" {
		return s.compact(c, len(puts), next)
	}
	return nil
}

// count adds the words of a folder's entries to the vocabulary.
func (s *store) count(entries map[string]*entry) {
	all := slices.Collect(maps.Values(entries))
	for len(all) > 0 {
		some := all[:min(batchSize, len(all))]
		all = all[len(some):]
		s.words.add(analyze(s.ranker, some), 1)
	}
}

// forget removes the words of entries from the vocabulary.
func (s *store) forget(entries []*entry) {
	for len(entries) > 0 {
		some := entries[:min(batchSize, len(entries))]
		entries = entries[len(some):]
		s.words.add(analyze(s.ranker, some), -1)
	}
}

// batches writes entries, and returns how many of them the vocabulary counts: none without
// count.
func (s *store) batches(ctx context.Context, puts []*entry, drops []string, count bool) (counted int, err error) {
	for first := true; first && len(drops) > 0 || len(puts) > 0; first = false {
		if err := ctx.Err(); err != nil {
			return counted, err
		}
		some := puts[:min(batchSize, len(puts))]
		puts = puts[len(some):]
		batch := index.NewBatch()
		if first {
			for _, id := range drops {
				batch.Delete(id)
			}
		}
		found := analyze(s.ranker, some)
		for i := range found {
			some[i].lengths = found[i].lengths()
			doc, err := s.document(some[i], found[i])
			if err != nil {
				return counted, err
			}
			batch.Update(doc)
		}
		if count {
			s.words.add(found, 1)
			counted += len(some)
		}
		if err := s.index.Batch(batch); err != nil {
			return counted, err
		}
	}
	return counted, nil
}

func (s *store) restore(c change, held map[string]*entry) error {
	var puts []*entry
	var drops []string
	for id := range c.put {
		if old := held[id]; old != nil {
			copied := *old // its lengths are written
			puts = append(puts, &copied)
		} else {
			drops = append(drops, id)
		}
	}
	for _, id := range c.drop {
		copied := *held[id]
		puts = append(puts, &copied)
	}
	_, err := s.batches(context.Background(), puts, drops, false)
	return err
}

const (
	// looseSegments is how many small segments may accumulate in memory, where scorch does not merge
	// them.
	looseSegments = 48
	// looseDocuments is how many documents make a merged segment a large one.
	looseDocuments = batchSize
)

// compact puts the documents of many small segments in again, together: scorch merges only files,
// and every search visits each segment.
func (s *store) compact(c change, puts int, next map[string]*entry) error {
	for _, id := range c.drop {
		delete(s.loose, id)
	}
	if puts == 0 || puts >= looseDocuments {
		return nil
	}
	s.segments++
	for id := range c.put {
		s.loose[id] = true
	}
	if s.segments < looseSegments {
		return nil
	}
	var again []*entry
	for id := range s.loose {
		copied := *next[id]
		again = append(again, &copied)
	}
	s.segments = 1
	if len(again) >= looseDocuments {
		clear(s.loose)
		s.segments = 0
	}
	_, err := s.batches(context.Background(), again, nil, false)
	return err
}

// document is a record in scorch's form: its words are analyzed already, joined with single
// spaces, and split there again.
func (s *store) document(e *entry, found recordWords) (*document.Document, error) {
	doc := document.NewDocument(e.record.ID)
	text := func(field string, terms []words.Term) {
		var all []byte
		for _, t := range terms {
			for _, form := range t.Forms {
				all = append(append(all, form...), ' ')
			}
		}
		if len(all) > 0 {
			doc.AddField(document.NewTextFieldCustom(field, nil, all, index.IndexField, spaced{}))
		}
	}
	text(fieldTitle, found.title)
	text(fieldTags, found.tags)
	text(fieldText, found.text)
	exact := func(field, value string, position uint64) {
		doc.AddField(document.NewTextFieldCustom(field, []uint64{position}, []byte(value), index.IndexField|index.SkipFreqNorm, nil))
	}
	exact(fieldNamespace, string(e.record.Namespace), 0)
	exact(fieldType, string(e.record.Type), 0)
	for i, tag := range e.record.Tags {
		exact(fieldTag, tag, uint64(i))
	}
	if s.dir != "" {
		data, err := json.Marshal(stored{Record: e.record, Lengths: e.lengths})
		if err != nil {
			return nil, err
		}
		doc.AddField(document.NewTextFieldCustom(fieldRecord, nil, data, index.StoreField, nil))
	}
	return doc, nil
}

// spaced splits at single spaces.
type spaced struct{}

func (spaced) Analyze(text []byte) analysis.TokenStream {
	var stream analysis.TokenStream
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != ' ' {
			continue
		}
		if i > start {
			stream = append(stream, &analysis.Token{Term: text[start:i:i], Start: start, End: i, Position: len(stream) + 1, Type: analysis.AlphaNumeric})
		}
		start = i + 1
	}
	return stream
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

package kb

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"voicegw/internal/process"
)

//go:embed demo
var demo embed.FS

// demoFolder returns some sixty records of an invented design studio. Its people, firms, addresses and numbers do not
// exist.
func demoFolder() fs.FS {
	sub, _ := fs.Sub(demo, "demo") // it fails only for an invalid name
	return sub
}

// SourceOptions configure a Source. The zero value means the demo.
type SourceOptions struct {
	Path     string       // the folder of records. Empty means the demo, which does not change.
	Synonyms *SynonymFile // may be nil. The source rereads their file when it changes.
	Static   bool         // disables rereading
	// Debounce is the time after the last change before the source rereads the folder. Zero means 250 ms.
	Debounce time.Duration
	// Poll is the interval of walks, for file systems that report no changes, such as network ones. Zero means 30 s.
	Poll time.Duration
	// OnChange gets each change and each error: the first one from OpenSource, then one at a time. It must not call Close. It
	// may be nil.
	OnChange func(SourceChange)
	// Logger gets a line for each change, and for each new problem among the first twenty. Nil means no logging.
	Logger *slog.Logger
}

// SourceChange is the effect of a reading on the index.
type SourceChange struct {
	Records int // the number of records in the index
	// Upserted and Deleted count changed records.
	Upserted, Deleted int
	// Embedded counts records with a new vector, Waiting those without one.
	Embedded, Waiting int
	Problems          []Problem // all current problems
	Err               error     // the error of the index. The source tries again.
}

// Source makes an index hold exactly the records of a folder of Markdown and JSON lines files, which docs/knowledge.md
// describes. It may be used concurrently.
//
// It ignores README.md and names that begin with a dot or an underscore. It follows links to files, not to folders. A
// file that exceeds a limit is a [Problem].
type Source struct {
	// Fixed after OpenSource.
	index   Index
	options SourceOptions
	log     *slog.Logger
	retry   *time.Timer // the next call of embed
	cancel  context.CancelFunc
	done    sync.WaitGroup

	working  sync.Mutex // serialises readings and calls of embed, and guards the following fields
	scanner  scanner
	folders  []string // the walked ones
	logged   map[Problem]bool
	backoff  time.Duration
	embedded int // counts new vectors since the last report

	mu   sync.Mutex // guards the following field
	last SourceChange
}

const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
	// embedChunk bounds the records of an Apply with vectors, because a failure of the Embedder loses all of them.
	embedChunk = 512
)

// OpenSource reads the folder into the index and watches it until Close. When it returns, the records are searchable by
// words; vectors follow. ctx bounds only the first reading. Bad records are in State().Problems. The error is about the
// folder or the index.
func OpenSource(ctx context.Context, index Index, o SourceOptions) (*Source, error) {
	o.Debounce, o.Poll = cmp.Or(o.Debounce, 250*time.Millisecond), cmp.Or(o.Poll, 30*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Source{index: index, options: o, log: o.Logger, retry: time.NewTimer(0), logged: map[Problem]bool{}, backoff: firstRetry}
	if o.Path == "" {
		s.scanner.root = demoFolder()
		s.options.Static = o.Static || o.Synonyms == nil
	} else {
		info, err := os.Stat(o.Path)
		if err == nil && !info.IsDir() {
			err = errors.New("it is a file; name its folder")
		}
		if err != nil {
			return nil, fmt.Errorf("kb: folder %s: %w", o.Path, err)
		}
		s.scanner.root = os.DirFS(o.Path)
	}
	if change := s.read(ctx); change.Err != nil {
		s.retry.Stop()
		return nil, fmt.Errorf("kb: reading %s: %w", s.name(), change.Err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.done.Go(func() { s.embedAll(running) })
	if !s.options.Static {
		s.done.Go(func() {
			process.Run(running, process.Options{
				What: "knowledge base", Files: s.watched, Look: func() { s.read(running) }, Logger: s.log,
				Settle: o.Debounce, Every: o.Poll,
			})
		})
	}
	return s, nil
}

func (s *Source) name() string {
	if s.options.Path == "" {
		return "the demo knowledge base"
	}
	return s.options.Path
}

// State returns the result of the last reading.
func (s *Source) State() SourceChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.last
	c.Problems = slices.Clone(c.Problems)
	return c
}

// Close stops the source and cancels a running reading. It leaves the index open. It may be called more than once.
func (s *Source) Close() error {
	s.cancel()
	s.done.Wait()
	return nil
}

// watched returns files in all folders to watch.
func (s *Source) watched() []string {
	s.working.Lock()
	defer s.working.Unlock()
	var files []string
	if s.options.Path != "" {
		for _, folder := range s.folders {
			files = append(files, filepath.Join(s.options.Path, filepath.FromSlash(folder), "any"))
		}
	}
	if s.options.Synonyms != nil {
		files = append(files, s.options.Synonyms.path)
	}
	return files
}

// read makes the index equal to the folder, by words. Another reading tries again after an error of the index.
func (s *Source) read(ctx context.Context) SourceChange {
	s.working.Lock()
	defer s.working.Unlock()
	all := s.scanner.scan()
	s.folders = all.folders
	change := SourceChange{Records: len(all.records), Problems: all.problems}
	if s.options.Synonyms != nil {
		change.Problems = append(slices.Clip(change.Problems), s.options.Synonyms.reload()...)
	}
	var held map[string]Held
	held, change.Err = s.index.Held(ctx)
	if change.Err == nil {
		batch := s.difference(all, held, &change)
		if len(batch.Upsert)+len(batch.Delete) > 0 {
			change.Upserted, change.Deleted = len(batch.Upsert), len(batch.Delete)
			change.Err = s.index.Apply(ctx, batch)
		}
	}
	if change.Upserted > 0 {
		s.retry.Reset(0)
	}
	s.report(ctx, change)
	return change
}

func (s *Source) difference(all *scanned, held map[string]Held, change *SourceChange) Batch {
	batch := Batch{WordsOnly: true}
	for id, one := range all.records {
		h, ok := held[id]
		if !ok || h.Hash != one.hash {
			batch.Upsert = append(batch.Upsert, one.record)
		}
	}
	for id := range held {
		if _, ok := all.records[id]; !ok {
			batch.Delete = append(batch.Delete, id)
		}
	}
	// An unmounted folder looks like an empty one.
	if len(batch.Delete) > 0 && (all.partial || len(all.records) == 0) {
		change.Problems = append(change.Problems, Problem{File: ".", Message: fmt.Sprintf(
			"%d records of the index are missing in the folder, but kept, because the folder is empty or not "+
				"completely readable", len(batch.Delete))})
		change.Records += len(batch.Delete)
		batch.Delete = nil
	}
	return batch
}

// embedAll adds vectors until ctx ends.
func (s *Source) embedAll(ctx context.Context) {
	defer s.retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.retry.C:
			s.embed(ctx)
		}
	}
}

// embed reapplies some records without a vector, and sets the timer for the next ones or, if the Embedder fails, for
// another attempt.
func (s *Source) embed(ctx context.Context) {
	s.working.Lock()
	defer s.working.Unlock()
	waiting, err := s.waiting(ctx)
	if err != nil || len(waiting) == 0 {
		return // the next reading reports an error of the index
	}
	before := len(waiting)
	err = s.index.Apply(ctx, Batch{Upsert: waiting[:min(embedChunk, before)]})
	if err == nil {
		waiting, err = s.waiting(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	embedded := max(before-len(waiting), 0)
	s.embedded += embedded
	if embedded > 0 {
		s.backoff = firstRetry
		if len(waiting) > 0 && err == nil {
			s.retry.Reset(0)
			return
		}
	}
	if len(waiting) > 0 {
		s.retry.Reset(s.backoff)
		s.backoff = min(2*s.backoff, lastRetry)
	}
	change := s.State()
	change.Upserted, change.Deleted = 0, 0
	change.Embedded, change.Waiting, change.Err = s.embedded, len(waiting), err
	s.embedded = 0
	s.report(ctx, change)
}

// waiting returns the records that lack only their vector in the index.
func (s *Source) waiting(ctx context.Context) ([]Record, error) {
	held, err := s.index.Held(ctx)
	if err != nil {
		return nil, err
	}
	var waiting []Record
	for _, f := range s.scanner.files {
		for _, one := range f.records {
			if h, ok := held[one.record.ID]; ok && !h.Complete && h.Hash == one.hash {
				waiting = append(waiting, one.record)
			}
		}
	}
	return waiting, nil
}

// report stores the change, and if there is news, logs it and calls OnChange.
func (s *Source) report(ctx context.Context, c SourceChange) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	news := c.Upserted+c.Deleted+c.Embedded > 0 || c.Err != nil || !slices.Equal(c.Problems, s.last.Problems)
	s.last = c
	s.mu.Unlock()
	if !news {
		return
	}
	s.logProblems(c.Problems)
	attributes := []any{"source", s.name(), "records", c.Records, "upserted", c.Upserted, "deleted", c.Deleted,
		"embedded", c.Embedded, "without_vector", c.Waiting, "problems", len(c.Problems)}
	if c.Err != nil {
		s.log.Error("updating the knowledge base failed", append(attributes, "error", c.Err)...)
	} else {
		s.log.Info("knowledge base read", attributes...)
	}
	if s.options.OnChange != nil {
		c.Problems = slices.Clone(c.Problems)
		s.options.OnChange(c)
	}
}

func (s *Source) logProblems(problems []Problem) {
	const most = 20
	now := map[Problem]bool{}
	lines := 0
	for _, p := range problems {
		now[p] = true
		if !s.logged[p] && lines < most {
			lines++
			s.log.Warn("knowledge base", "problem", p.Error())
		}
	}
	s.logged = now
}

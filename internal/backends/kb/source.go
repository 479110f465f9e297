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

	"github.com/fsnotify/fsnotify"
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
	cancel  context.CancelFunc
	done    sync.WaitGroup

	// Owned by OpenSource, then by run.
	scanner  scanner
	watcher  *fsnotify.Watcher // nil if the system cannot watch, or if Static
	refused  map[string]bool   // folders that the system cannot watch
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
	s := &Source{index: index, options: o, log: o.Logger, refused: map[string]bool{}, logged: map[Problem]bool{}, backoff: firstRetry}
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
	s.startWatching()
	change := s.read(ctx, nil)
	if change.Err != nil {
		s.stopWatching()
		return nil, fmt.Errorf("kb: reading %s: %w", s.name(), change.Err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.done.Go(func() { s.run(running) })
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

func (s *Source) run(ctx context.Context) {
	defer s.stopWatching()
	retry := time.NewTimer(0) // the vectors of the first reading
	defer retry.Stop()
	var quiet, poll <-chan time.Time
	var events chan fsnotify.Event
	var faults chan error
	if !s.options.Static {
		ticker := time.NewTicker(s.options.Poll)
		defer ticker.Stop()
		poll = ticker.C
		if s.watcher != nil {
			events, faults = s.watcher.Events, s.watcher.Errors
		}
	}
	dirty := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if name, err := filepath.Rel(s.options.Path, e.Name); err == nil {
				dirty[filepath.ToSlash(name)] = true
			}
			quiet = time.After(s.options.Debounce)
			continue
		case <-faults: // lost events; the walk finds the changes
			quiet = time.After(s.options.Debounce)
			continue
		case <-retry.C:
			s.embed(ctx, retry)
			continue
		case <-quiet:
			quiet = nil
		case <-poll: // also tries again after an error of the index
		}
		change := s.read(ctx, dirty)
		if change.Err == nil {
			clear(dirty)
		}
		if change.Upserted > 0 {
			retry.Reset(0)
		}
	}
}

// read makes the index equal to the folder, by words.
func (s *Source) read(ctx context.Context, dirty map[string]bool) SourceChange {
	all := s.scanner.scan(dirty)
	for range 3 { // new folders may contain files from before the watch
		if !s.watch(all.folders) {
			break
		}
		all = s.scanner.scan(dirty)
	}
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

// embed reapplies some records without a vector, and sets the timer for the next ones or, if the Embedder fails, for
// another attempt.
func (s *Source) embed(ctx context.Context, retry *time.Timer) {
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
			retry.Reset(0)
			return
		}
	}
	if len(waiting) > 0 {
		retry.Reset(s.backoff)
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

// startWatching makes the system report changes. If the system cannot, only the walk finds them.
func (s *Source) startWatching() {
	if s.options.Static {
		return
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("cannot watch the knowledge base; polling it", "source", s.name(), "error", err, "every", s.options.Poll)
		return
	}
	s.watcher = watcher
	if s.options.Path != "" {
		s.watch([]string{"."})
	}
	if s.options.Synonyms != nil {
		// Watch the folder, because editors replace the file with a new one.
		if err := watcher.Add(filepath.Dir(s.options.Synonyms.path)); err != nil {
			s.log.Warn("cannot watch the synonyms; polling them", "error", err, "every", s.options.Poll)
		}
	}
}

func (s *Source) stopWatching() {
	if s.watcher != nil {
		_ = s.watcher.Close() // cannot lose data
	}
}

// watch adds unwatched folders, including recreated ones, and reports whether there were any.
func (s *Source) watch(folders []string) (found bool) {
	if s.watcher == nil || s.options.Path == "" {
		return false
	}
	watched := map[string]bool{}
	for _, name := range s.watcher.WatchList() {
		watched[name] = true
	}
	for _, folder := range folders {
		name := filepath.Join(s.options.Path, filepath.FromSlash(folder))
		if watched[name] {
			continue
		}
		err := s.watcher.Add(name)
		if err == nil {
			found = true
		} else if !errors.Is(err, fs.ErrNotExist) && !s.refused[name] {
			s.refused[name] = true
			s.log.Warn("cannot watch a folder; polling it", "folder", name, "error", err, "every", s.options.Poll)
		}
	}
	return found
}

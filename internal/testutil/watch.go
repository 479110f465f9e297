package testutil

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"voicegw/internal/logging"
)

const shortest = 8 // the minimum length of a secret to search for, in bytes

// Sink names a place where no secret may appear, such as "log".
type Sink string

// exempt reports whether a kind of secret may appear in a sink: a client that may read a conversation may also see its
// images.
func exempt(sink Sink, kind logging.Kind) bool {
	return kind == logging.Image && (sink == Conversations || sink == Data)
}

// The common sinks.
const (
	Log           Sink = "log"
	Audit         Sink = "audit"
	Conversations Sink = "conversation"
	Errors        Sink = "answer that is an error"
	Data          Sink = "data folder"
)

type finding struct {
	Sink  Sink         `json:"sink"`
	Kind  logging.Kind `json:"kind"`
	Where string       `json:"where,omitempty"` // the sink's file, if any
}

func (f finding) String() string {
	text := fmt.Sprintf("secretwatch: a secret (%s) leaked to a sink (%s)", f.Kind, f.Sink)
	if f.Where != "" {
		text += ", in " + f.Where
	}
	return text
}

// watcher knows the secrets of a run. It may be used concurrently.
type watcher struct {
	mu      sync.RWMutex // guards the fields below
	first   [1 << 16]bool
	secrets map[[shortest]byte][]known // by first bytes
	kinds   map[logging.Kind]int
	read    map[Sink]int64 // in bytes
	found   map[finding]bool
	report  func(finding) // reports to the parent in a child process; otherwise nil
}

type known struct {
	kind   logging.Kind
	secret string
}

func newWatcher() *watcher {
	return &watcher{secrets: map[[shortest]byte][]known{}, kinds: map[logging.Kind]int{}, read: map[Sink]int64{}, found: map[finding]bool{}}
}

func (w *watcher) made(kind logging.Kind, secret string) {
	if len(secret) < shortest {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := [shortest]byte([]byte(secret))
	k := known{kind, secret}
	if !slices.Contains(w.secrets[begin], k) {
		w.secrets[begin] = append(w.secrets[begin], k)
		w.first[int(begin[0])<<8|int(begin[1])] = true
		w.kinds[kind]++
	}
}

func (w *watcher) look(text []byte) []logging.Kind {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var kinds []logging.Kind
	for i := 0; i+shortest <= len(text); i++ {
		if !w.first[int(text[i])<<8|int(text[i+1])] {
			continue
		}
		for _, k := range w.secrets[[shortest]byte(text[i:])] {
			if strings.HasPrefix(string(text[i:min(len(text), i+len(k.secret))]), k.secret) {
				kinds = append(kinds, k.kind)
			}
		}
	}
	return kinds
}

func (w *watcher) check(sink Sink, where string, text []byte) {
	kinds := w.look(text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[sink] += int64(len(text))
	for _, kind := range kinds {
		if exempt(sink, kind) {
			continue
		}
		w.add(finding{sink, kind, where})
	}
}

// add records a finding; mu must be held.
func (w *watcher) add(f finding) {
	if !w.found[f] && w.report != nil {
		w.report(f)
	}
	w.found[f] = true
}

// folder checks every file of a folder, except for the operators' key in its own file.
func (w *watcher) folder(sink Sink, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "operators.key" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(dir, path)
		w.check(sink, where, text)
		w.check(sink, "the name of a file", []byte(where))
		return err
	})
}

const longest = 256 // the maximum length in bytes of a secret that is found across two writes

type sink struct {
	w    *watcher
	name Sink
	next io.Writer

	mu   sync.Mutex // guards the field below
	tail []byte     // the end of the previous write
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	text := append(s.tail, p...)
	s.w.check(s.name, "", text)
	s.tail = slices.Clone(text[max(0, len(text)-longest):])
	s.mu.Unlock()
	if s.next == nil {
		return len(p), nil
	}
	return s.next.Write(p)
}

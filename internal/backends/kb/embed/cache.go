package embed

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"voicegw/internal/backends/kb"
)

// CacheOptions configure a Cache.
type CacheOptions struct {
	// Path is a file in which the vectors of records outlive the process; it and its folder are
	// created if they are missing. Empty keeps none of them, because an index holds its own. One
	// process at a time should use the file; two do no harm, but pay twice.
	Path string
	// Identity names the model and everything else that determines the vectors; a file made
	// under another one is replaced. Client.Identity returns one.
	Identity string
	// Queries is how many questions' vectors are kept, in memory only: the latest ones. Zero
	// means 1000.
	Queries int
	// MaxBytes is the size of the file beyond which NewCache replaces it. Zero means 4 GiB.
	MaxBytes int64
}

// Cache is a kb.QueryEmbedder that asks another one only for vectors that it does not have. It
// may be used concurrently.
type Cache struct {
	// Fixed after NewCache.
	embedder kb.Embedder
	most     int

	mu      sync.Mutex    // guards the following fields
	file    *os.File      // nil without a path, and after Close
	full    bool          // a write failed: nothing more is kept
	at      map[key]int64 // where each entry begins
	queries map[key]*list.Element
	order   *list.List // of query, the last asked in front
}

type key [sha256.Size]byte

type query struct {
	key    key
	vector []float32
}

var _ kb.QueryEmbedder = (*Cache)(nil)

// The file is a head, then entries: the hash of the text, the length of the vector, the vector,
// a CRC of all three; integers and floats in little endian.
const (
	magic       = "kbvector1\n"
	headSize    = len(magic) + sha256.Size
	entryFixed  = sha256.Size + 4 + 4
	maxNumbers  = 16384
	defaultMost = 1000
)

// NewCache makes a Cache and opens its file.
func NewCache(embedder kb.Embedder, o CacheOptions) (*Cache, error) {
	if o.Queries <= 0 {
		o.Queries = defaultMost
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 30
	}
	c := &Cache{embedder: embedder, most: o.Queries, at: map[key]int64{}, queries: map[key]*list.Element{}, order: list.New()}
	if o.Path == "" {
		return c, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("embed: cache: %w", err)
	}
	file, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embed: cache: %w", err)
	}
	c.file = file
	if err := c.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("embed: cache %s: %w", o.Path, err), file.Close())
	}
	return c, nil
}

// open finds the entries. Everything from the first broken entry on, as a crash leaves it, is
// cut off.
func (c *Cache) open(o CacheOptions) error {
	identity := sha256.Sum256([]byte(o.Identity))
	head := append([]byte(magic), identity[:]...)
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= o.MaxBytes {
		have := make([]byte, headSize)
		if _, err := c.file.ReadAt(have, 0); err == nil && bytes.Equal(have, head) {
			return c.file.Truncate(c.index(info.Size()))
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if err := c.file.Truncate(0); err != nil {
		return err
	}
	_, err = c.file.Write(head)
	return err
}

// index notes the whole entries of the file, and returns where they end.
func (c *Cache) index(size int64) int64 {
	r := bufio.NewReaderSize(io.NewSectionReader(c.file, int64(headSize), size-int64(headSize)), 1<<20)
	at := int64(headSize)
	for {
		k, _, n, err := readEntry(r)
		if err != nil {
			return at
		}
		c.at[k] = at
		at += n
	}
}

var errEntry = errors.New("a broken entry")

// readEntry reads one entry, and returns its length in bytes.
func readEntry(r io.Reader) (k key, vector []float32, size int64, err error) {
	sum := crc32.NewIEEE()
	head := make([]byte, sha256.Size+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return k, nil, 0, err
	}
	copy(k[:], head)
	n := binary.LittleEndian.Uint32(head[sha256.Size:])
	if n == 0 || n > maxNumbers {
		return k, nil, 0, errEntry
	}
	body := make([]byte, 4*n+4)
	if _, err := io.ReadFull(r, body); err != nil {
		return k, nil, 0, err
	}
	numbers := body[:4*n]
	sum.Write(head)    // it never fails
	sum.Write(numbers) // it never fails
	if sum.Sum32() != binary.LittleEndian.Uint32(body[4*n:]) {
		return k, nil, 0, errEntry
	}
	vector = make([]float32, n)
	_, err = binary.Decode(numbers, binary.LittleEndian, vector)
	return k, vector, int64(entryFixed) + 4*int64(n), err
}

func appendEntry(data []byte, k key, vector []float32) []byte {
	start := len(data)
	data = append(data, k[:]...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(vector)))
	data, _ = binary.Append(data, binary.LittleEndian, vector) // numbers have a fixed size: it cannot fail
	return binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(data[start:]))
}

// Embed implements kb.Embedder. If the file cannot be written or read, that costs a request, not
// the answer.
func (c *Cache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	asked := map[string][]int{}
	var missing []string
	for i, text := range texts {
		if vectors[i] = c.record(sha256.Sum256([]byte(text))); vectors[i] == nil {
			if asked[text] == nil {
				missing = append(missing, text)
			}
			asked[text] = append(asked[text], i)
		}
	}
	// Kept part by part, so that vectors which were paid for stay if a later part fails.
	for len(missing) > 0 {
		some := missing[:min(len(missing), keepEvery)]
		missing = missing[len(some):]
		got, err := c.embedder.Embed(ctx, some)
		if err != nil {
			return nil, err
		}
		if err := kb.CheckVectors(got, len(some)); err != nil {
			return nil, err
		}
		c.keep(some, got)
		for j, text := range some {
			for _, i := range asked[text] {
				vectors[i] = got[j]
			}
		}
	}
	return vectors, nil
}

const keepEvery = 96

func (c *Cache) record(k key) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[k]
	if !ok || c.file == nil {
		return nil
	}
	found, vector, _, err := readEntry(io.NewSectionReader(c.file, at, entryFixed+4*maxNumbers))
	if err != nil || found != k {
		delete(c.at, k)
		return nil
	}
	return vector
}

func (c *Cache) keep(texts []string, vectors [][]float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil || c.full {
		return
	}
	var data []byte
	starts := make([]int, len(texts))
	keys := make([]key, len(texts))
	for i, text := range texts {
		if len(vectors[i]) > maxNumbers {
			return
		}
		keys[i] = sha256.Sum256([]byte(text))
		starts[i] = len(data)
		data = appendEntry(data, keys[i], vectors[i])
	}
	if _, err := c.file.Write(data); err != nil {
		c.full = true // half an entry may be at the end; the next open cuts it off
		return
	}
	end, err := c.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return
	}
	for i, k := range keys {
		c.at[k] = end - int64(len(data)) + int64(starts[i])
	}
}

// EmbedQuery implements kb.QueryEmbedder.
func (c *Cache) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	k := key(sha256.Sum256([]byte(text)))
	c.mu.Lock()
	if e := c.queries[k]; e != nil {
		c.order.MoveToFront(e)
		vector := e.Value.(query).vector
		c.mu.Unlock()
		return vector, nil
	}
	c.mu.Unlock()
	vector, err := kb.EmbedQuery(ctx, c.embedder, text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queries[k] == nil {
		c.queries[k] = c.order.PushFront(query{key: k, vector: vector})
	}
	if c.order.Len() > c.most {
		oldest := c.order.Back()
		delete(c.queries, oldest.Value.(query).key)
		c.order.Remove(oldest)
	}
	return vector, nil
}

// Close closes the file. Embed continues without it.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	file := c.file
	c.file = nil
	return file.Close()
}

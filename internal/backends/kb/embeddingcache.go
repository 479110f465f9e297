package kb

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// EmbeddingCacheOptions configure an EmbeddingCache.
type EmbeddingCacheOptions struct {
	// Path is a file that keeps the vectors of records; it and its folder are created if they are missing. Empty keeps
	// none, because an index holds its own. If two processes use the file, both may pay for the same vectors.
	Path     string
	Identity string // the Embedder's, such as EmbeddingClient.Identity; a file of another one is replaced
}

// EmbeddingCache is a QueryEmbedder that keeps the vectors of another one, so that each is paid for once. It may be
// used concurrently.
type EmbeddingCache struct {
	// Fixed after NewEmbeddingCache.
	embedder Embedder

	mu      sync.Mutex          // guards the following fields
	file    *os.File            // nil without a path, and after Close
	full    bool                // a write failed, so nothing more is kept
	at      map[vectorKey]int64 // the offset of each entry
	queries []queryVector       // the most recent last
}

type vectorKey [sha256.Size]byte

type queryVector struct {
	key    vectorKey
	vector []float32
}

var _ QueryEmbedder = (*EmbeddingCache)(nil)

// The file is a head, then entries: the hash of the text, the length of the vector, the vector, and a CRC of the three.
// Integers and floats are little endian.
const (
	cacheMagic     = "kbvector1\n"
	cacheHeadSize  = len(cacheMagic) + sha256.Size
	cacheEntrySize = sha256.Size + 4 + 4 // without the vector
	maxNumbers     = 16384               // of a vector
	maxCacheBytes  = 4 << 30             // NewEmbeddingCache replaces a larger file
	maxQueries     = 1000                // whose vectors are kept, in memory only
)

// NewEmbeddingCache makes an EmbeddingCache and opens its file.
func NewEmbeddingCache(embedder Embedder, o EmbeddingCacheOptions) (*EmbeddingCache, error) {
	c := &EmbeddingCache{embedder: embedder, at: map[vectorKey]int64{}}
	if o.Path == "" {
		return c, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
		return nil, fmt.Errorf("kb: cache of vectors: %w", err)
	}
	file, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kb: cache of vectors: %w", err)
	}
	c.file = file
	if err := c.open(o.Identity); err != nil {
		return nil, errors.Join(fmt.Errorf("kb: cache of vectors %s: %w", o.Path, err), file.Close())
	}
	return c, nil
}

// open finds the entries. It cuts the file at the first broken one, because a crash can leave half an entry at the end.
func (c *EmbeddingCache) open(identity string) error {
	hash := sha256.Sum256([]byte(identity))
	head := append([]byte(cacheMagic), hash[:]...)
	info, err := c.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() <= maxCacheBytes {
		have := make([]byte, cacheHeadSize)
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

// index records the offsets of the entries up to the first broken one, and returns their end.
func (c *EmbeddingCache) index(size int64) int64 {
	r := bufio.NewReaderSize(io.NewSectionReader(c.file, int64(cacheHeadSize), size-int64(cacheHeadSize)), 1<<20)
	at := int64(cacheHeadSize)
	for {
		k, vector, err := readEntry(r)
		if err != nil {
			return at
		}
		c.at[k] = at
		at += int64(cacheEntrySize + 4*len(vector))
	}
}

var errEntry = errors.New("a broken entry")

func readEntry(r io.Reader) (k vectorKey, vector []float32, err error) {
	head := make([]byte, sha256.Size+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return k, nil, err
	}
	copy(k[:], head)
	n := binary.LittleEndian.Uint32(head[sha256.Size:])
	if n == 0 || n > maxNumbers {
		return k, nil, errEntry
	}
	body := make([]byte, 4*n+4)
	if _, err := io.ReadFull(r, body); err != nil {
		return k, nil, err
	}
	numbers := body[:4*n]
	if crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, numbers) != binary.LittleEndian.Uint32(body[4*n:]) {
		return k, nil, errEntry
	}
	vector = make([]float32, n)
	_, err = binary.Decode(numbers, binary.LittleEndian, vector)
	return k, vector, err
}

func newEntry(k vectorKey, vector []float32) []byte {
	data := binary.LittleEndian.AppendUint32(k[:], uint32(len(vector)))
	data, _ = binary.Append(data, binary.LittleEndian, vector) // numbers have a fixed size: it cannot fail
	return binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// Embed implements Embedder. It asks the other Embedder for vectors that it cannot read from the file.
func (c *EmbeddingCache) Embed(ctx context.Context, texts []string) ([][]float32, error) {
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
	// Keep each part, because a later one may fail.
	for some := range slices.Chunk(missing, embeddingBatch) {
		got, err := c.embedder.Embed(ctx, some)
		if err != nil {
			return nil, err
		}
		if err := CheckVectors(got, len(some)); err != nil {
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

func (c *EmbeddingCache) record(k vectorKey) []float32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.at[k]
	if !ok || c.file == nil {
		return nil
	}
	found, vector, err := readEntry(io.NewSectionReader(c.file, at, cacheEntrySize+4*maxNumbers))
	if err != nil || found != k {
		delete(c.at, k)
		return nil
	}
	return vector
}

func (c *EmbeddingCache) keep(texts []string, vectors [][]float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil || c.full {
		return
	}
	for i, text := range texts {
		if len(vectors[i]) > maxNumbers {
			return
		}
		k := vectorKey(sha256.Sum256([]byte(text)))
		entry := newEntry(k, vectors[i])
		if _, err := c.file.Write(entry); err != nil {
			c.full = true // half an entry may be at the end; the next process removes it
			return
		}
		if end, err := c.file.Seek(0, io.SeekCurrent); err == nil {
			c.at[k] = end - int64(len(entry))
		}
	}
}

// EmbedQuery implements QueryEmbedder.
func (c *EmbeddingCache) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	k := vectorKey(sha256.Sum256([]byte(text)))
	c.mu.Lock()
	if i := c.query(k); i >= 0 {
		found := c.queries[i]
		c.queries = append(slices.Delete(c.queries, i, i+1), found)
		c.mu.Unlock()
		return found.vector, nil
	}
	c.mu.Unlock()
	vector, err := EmbedQuery(ctx, c.embedder, text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.query(k) < 0 {
		c.queries = append(c.queries, queryVector{key: k, vector: vector})
	}
	if len(c.queries) > maxQueries {
		c.queries = slices.Delete(c.queries, 0, 1)
	}
	return vector, nil
}

func (c *EmbeddingCache) query(k vectorKey) int {
	return slices.IndexFunc(c.queries, func(q queryVector) bool { return q.key == k })
}

// Close closes the file. Embed continues without it.
func (c *EmbeddingCache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	file := c.file
	c.file = nil
	return file.Close()
}

package store

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"voicegw/internal/conversation"
)

const (
	// mostListed bounds the conversations in List, the last saved ones. Each takes about half a kilobyte of memory once
	// the list was requested.
	mostListed = 25_000
	// MostPage bounds a page.
	MostPage = 200
	// noteHeader holds a conversation's digest as ASCII JSON.
	noteHeader = "Voicegw-Digest"
)

// ErrCursor means that Query.After is not a valid Page.Next.
var ErrCursor = errors.New("store: invalid page cursor")

// Query selects a page.
type Query struct {
	// User selects one user's conversations; empty means all.
	User string
	// After is the previous page's Next; empty for the first page.
	After string
	// Most is the page's size, clamped to 1 to MostPage.
	Most int
}

// Page is a part of the list.
type Page struct {
	Lines []conversation.Digest
	// Next is the next page's After; empty on the last page.
	Next string
	// Incomplete, on the last page, means that older conversations may exist.
	Incomplete bool
}

// listing is a copy of the last saved conversations' digests. It follows the bucket once it was requested.
type listing struct {
	// Immutable.
	talks  *Conversations
	mirror *mirror
	most   int

	mu    sync.Mutex // guards the following fields
	first chan struct{}
	// order has *listed by revision, newest at the back: the oldest expires next.
	order *list.List
	byKey map[string]*list.Element
	over  uint64 // the newest revision that had no room
}

type listed struct {
	key      string
	revision uint64
	end      time.Time
	user     string
	digest   string // JSON, decoded only when shown
}

func newListing(c *Conversations, most int) *listing {
	l := &listing{talks: c, most: most, order: list.New(), byKey: make(map[string]*list.Element)}
	l.mirror = c.bucket.store.newMirror(mirror{
		bucket: c.bucket, what: "conversations", take: l.take, dropUnseen: l.dropUnseen, headersOnly: true, newest: uint64(most),
		skipped: l.skipped,
	})
	return l
}

// List returns a page of the stored conversations, last saved first. It reads an in-memory copy that follows other
// nodes' writes within milliseconds; a process's first call waits up to Options.Wait for the copy. A conversation saved
// between two pages moves to the front. The error is ErrCursor or wraps ErrUnavailable.
func (c *Conversations) List(ctx context.Context, q Query) (Page, error) {
	after := uint64(0)
	if q.After != "" {
		var err error
		if after, err = strconv.ParseUint(q.After, 36, 64); err != nil || after == 0 {
			return Page{}, ErrCursor
		}
	}
	if err := c.listing.whole(ctx); err != nil {
		return Page{}, err
	}
	oldest, err := c.oldest(ctx)
	if err != nil {
		return Page{}, err
	}
	return c.listing.page(q, after, oldest, time.Now())
}

// oldest returns the revision of the oldest stored conversation; older ones were removed to make room.
func (c *Conversations) oldest(ctx context.Context) (revision uint64, err error) {
	err = c.bucket.store.within(ctx, c.bucket.store.o.Wait, "listing the conversations", func(ctx context.Context) error {
		info, err := c.bucket.stream.Info(ctx)
		if err == nil {
			revision = info.State.FirstSeq
		}
		return err
	})
	return revision, err
}

// whole waits until all digests were read once; the first caller starts reading.
func (l *listing) whole(ctx context.Context) error {
	s := l.talks.bucket.store
	l.mu.Lock()
	if l.first == nil {
		first := make(chan struct{}) // closed by keepUp
		if !s.start(func() { l.mirror.keepUp(first) }) {
			l.mu.Unlock()
			return errClosed
		}
		l.first = first
	}
	first := l.first
	l.mu.Unlock()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	select {
	case <-first:
		return nil
	case <-s.done:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("store: listing the conversations: %w: they are still being read: %w", ErrUnavailable, ctx.Err())
	}
}

func (l *listing) page(q Query, after, oldest uint64, now time.Time) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(oldest, now)
	most := min(max(q.Most, 1), MostPage)
	p := Page{Lines: []conversation.Digest{}, Incomplete: l.over > 0 && l.over >= oldest}
	last := uint64(0)
	for at := l.order.Back(); at != nil; at = at.Prev() {
		is := at.Value.(*listed)
		if after != 0 && is.revision >= after || q.User != "" && is.user != q.User || !now.Before(is.end) {
			continue
		}
		if len(p.Lines) == most {
			p.Next, p.Incomplete = strconv.FormatUint(last, 36), false
			break
		}
		var d conversation.Digest
		if err := decode([]byte(is.digest), &d); err != nil {
			return Page{}, err // already validated
		}
		p.Lines, last = append(p.Lines, d), is.revision
	}
	return p, nil
}

// forget removes conversations that are no longer stored. mu is held.
func (l *listing) forget(oldest uint64, now time.Time) {
	for at := l.order.Front(); at != nil; at = l.order.Front() {
		if is := at.Value.(*listed); is.revision >= oldest && now.Before(is.end) {
			return
		}
		l.drop(at)
	}
}

func (l *listing) drop(at *list.Element) {
	delete(l.byKey, at.Value.(*listed).key)
	l.order.Remove(at)
}

func (l *listing) take(key string, m message) {
	is := &listed{key: key, revision: m.seq, end: m.end()}
	removed := m.header.Get(opHeader) != ""
	if !removed && !l.read(is, m.header.Get(noteHeader)) {
		removed = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.byKey[key]; before != nil {
		if before.Value.(*listed).revision > m.seq {
			return
		}
		l.drop(before)
	}
	if removed {
		return
	}
	l.byKey[key] = l.order.PushBack(is)
	for l.order.Len() > l.most {
		oldest := l.order.Front()
		l.over = max(l.over, oldest.Value.(*listed).revision)
		l.drop(oldest)
	}
}

// read fills in the digest; false if the conversation is gone or unreadable. One saved by an older version has no note
// and is read itself.
func (l *listing) read(is *listed, note string) bool {
	var d conversation.Digest
	if decode([]byte(note), &d) != nil || keyOf(d.ID) != is.key {
		h, err := l.talks.bucket.get(context.Background(), is.key)
		if err != nil {
			return false
		}
		var talk conversation.Conversation
		if decode(h.data, &talk) != nil || keyOf(talk.ID) != is.key {
			l.talks.bucket.store.log.Warn("store_conversation_unreadable", "key", is.key)
			return false
		}
		d = talk.Digest()
		note = noteOf(&talk)
	}
	// Copies, because the message and the conversation are larger.
	is.user, is.digest = strings.Clone(d.User), strings.Clone(note)
	return true
}

// dropUnseen removes conversations missing from a full read, except newer ones.
func (l *listing) dropUnseen(seen map[string]bool, last uint64, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.order.Front(); at != nil; {
		next := at.Next()
		if is := at.Value.(*listed); !seen[is.key] && is.revision <= last {
			l.drop(at)
		}
		at = next
	}
}

// skipped records that a read leaves out messages up to a revision for lack of room.
func (l *listing) skipped(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = max(l.over, revision)
}

// noteOf returns a conversation's digest for its header.
func noteOf(talk *conversation.Conversation) string {
	data, err := json.Marshal(talk.Digest())
	if err != nil {
		return "" // fails only for a time before year 0 or after 9999
	}
	return ascii(data)
}

// ascii escapes JSON to ASCII, as headers require.
func ascii(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		data = data[n:]
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

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
	// mostListed bounds how many conversations List knows: those that were saved last. One takes about
	// half a kilobyte of memory, once somebody has asked for the list.
	mostListed = 25_000
	// MostPage is how many conversations one page may have.
	MostPage = 200
	// noteHeader has the digest of a conversation, as JSON in ASCII.
	noteHeader = "Voicegw-Digest"
)

// ErrCursor says that no page of a list ends where a Query says that it did.
var ErrCursor = errors.New("store: no page ends there")

// Query is what List is asked for.
type Query struct {
	// User leaves out the conversations of everybody else; empty leaves out nobody's.
	User string
	// After is the Next of the page before; empty for the first page.
	After string
	// Most is how many lines the page may have, from 1 to MostPage; others count as the nearest of them.
	Most int
}

// Page is a part of the list.
type Page struct {
	Lines []conversation.Digest
	// Next is where the next page begins; empty on the last one.
	Next string
	// Incomplete says on the last page that older conversations may be kept, which are not listed.
	Incomplete bool
}

// listing is a copy of the digests of the conversations that were saved last. It follows the bucket as
// soon as somebody has asked for it.
type listing struct {
	// Fixed after newListing.
	talks  *Conversations
	mirror *mirror
	most   int

	mu    sync.Mutex // guards the following fields
	first chan struct{}
	// order has *listed by revision, the newest at the back: the oldest is the one that ends next.
	order *list.List
	byKey map[string]*list.Element
	over  uint64 // the newest revision that had no room
}

// listed is a conversation in the list.
type listed struct {
	key      string
	revision uint64
	end      time.Time
	user     string
	digest   string // JSON, which a page reads: most are never shown
}

func newListing(c *Conversations, most int) *listing {
	l := &listing{talks: c, most: most, order: list.New(), byKey: make(map[string]*list.Element)}
	l.mirror = c.bucket.store.newMirror(mirror{
		bucket: c.bucket, what: "conversations", take: l.take, dropUnseen: l.dropUnseen, headersOnly: true, newest: uint64(most), skipped: l.skipped,
	})
	return l
}

// List returns a page of the conversations that are kept, the one first that was saved last. It is read
// from memory, where a change of another node arrives within milliseconds; the first question of a
// process waits until they were read once, for at most Options.Wait. A conversation that is saved between
// two pages moves to the front, before the first of them. The error is ErrCursor, or wraps ErrUnavailable.
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

// oldest returns the revision of the oldest conversation that is kept: what was removed to make room
// is older.
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

// whole waits until all digests were read once. The first caller has them read.
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

// page reads a page from memory.
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
			return Page{}, err // it was read before
		}
		p.Lines, last = append(p.Lines, d), is.revision
	}
	return p, nil
}

// forget removes what is no longer kept. mu is held.
func (l *listing) forget(oldest uint64, now time.Time) {
	for at := l.order.Front(); at != nil; at = l.order.Front() {
		if is := at.Value.(*listed); is.revision >= oldest && now.Before(is.end) {
			return
		}
		l.drop(at)
	}
}

// drop removes a conversation from the list. mu is held.
func (l *listing) drop(at *list.Element) {
	delete(l.byKey, at.Value.(*listed).key)
	l.order.Remove(at)
}

// take puts one message of the bucket into the copy.
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

// read fills in the digest; false if the conversation is gone or cannot be read. One that an older version
// has saved has no note, and is read itself.
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
	// Copies: the message and the conversation are larger.
	is.user, is.digest = strings.Clone(d.User), strings.Clone(note)
	return true
}

// dropUnseen forgets conversations that a whole reading has not seen. One that was saved after the reading
// began has a newer revision than it found.
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

// skipped notes that a reading leaves out the messages up to a revision, because the list has no room for
// them.
func (l *listing) skipped(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = max(l.over, revision)
}

// noteOf returns the digest of a conversation for the header of its record.
func noteOf(talk *conversation.Conversation) string {
	data, err := json.Marshal(talk.Digest())
	if err != nil {
		return "" // it has only texts, numbers and times: a time before the year 0 or after 9999
	}
	return ascii(data)
}

// ascii writes JSON without a letter beyond ASCII, as headers carry it.
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

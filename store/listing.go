package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// listing is a copy of the last saved conversations' digests, without the oldest beyond most. It follows the bucket once
// it was requested.
type listing struct {
	copies[listed]     // by key
	most           int // immutable

	// mu guards the following fields.
	first chan struct{}
	over  uint64 // the newest revision that had no room
}

type listed struct {
	end    time.Time
	user   string
	digest string // JSON, decoded only when shown
}

func newListing(c *Conversations, most int) *listing {
	l := &listing{most: most}
	l.what, l.headersOnly, l.newest, l.skip = "conversations", true, uint64(most), l.skipped
	l.decode, l.unreadable, l.changed = l.read, "store_conversation_unreadable", l.bound
	l.open(c.bucket)
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
	s := l.bucket.store
	l.mu.Lock()
	if l.first == nil {
		first := make(chan struct{}) // closed by keepUp
		if !s.start(func() { l.keepUp(first) }) {
			l.mu.Unlock()
			return errClosed
		}
		l.first = first
	}
	first := l.first
	l.mu.Unlock()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	return await(ctx, s, first, "listing the conversations: they are still being read")
}

func (l *listing) page(q Query, after, oldest uint64, now time.Time) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []copied[listed]
	for key, is := range l.all {
		switch {
		case is.revision < oldest || !now.Before(is.value.end):
			delete(l.all, key) // no longer stored
		case (after == 0 || is.revision < after) && (q.User == "" || is.value.user == q.User):
			all = append(all, is)
		}
	}
	slices.SortFunc(all, func(x, y copied[listed]) int { return cmp.Compare(y.revision, x.revision) })
	p := Page{Lines: []conversation.Digest{}, Incomplete: l.over > 0 && l.over >= oldest}
	if most := min(max(q.Most, 1), MostPage); len(all) > most {
		all = all[:most]
		p.Next, p.Incomplete = strconv.FormatUint(all[most-1].revision, 36), false
	}
	for _, is := range all {
		var d conversation.Digest
		if err := decode([]byte(is.value.digest), &d); err != nil {
			return Page{}, err // already validated
		}
		p.Lines = append(p.Lines, d)
	}
	return p, nil
}

// bound drops the oldest conversation if there are too many. mu is held.
func (l *listing) bound(oldest string, is copied[listed]) {
	if len(l.all) <= l.most {
		return
	}
	revision := is.revision
	for key, is := range l.all {
		if is.revision < revision {
			oldest, revision = key, is.revision
		}
	}
	l.over = max(l.over, revision)
	delete(l.all, oldest)
}

// read returns a message's digest. A conversation saved by an older version has no note and is read itself.
func (l *listing) read(key string, m held) (listed, error) {
	note := m.note
	var d conversation.Digest
	if decode([]byte(note), &d) != nil || keyOf(d.ID) != key {
		var talk conversation.Conversation
		h, err := l.bucket.get(context.Background(), key)
		if err == nil {
			err = decode(h.data, &talk)
		}
		if err != nil {
			return listed{}, err
		}
		if keyOf(talk.ID) != key {
			return listed{}, fmt.Errorf("%w: the record belongs to another conversation", ErrCorrupt)
		}
		d, note = talk.Digest(), noteOf(&talk)
	}
	// Copies, because the message and the conversation are larger.
	return listed{end: m.end, user: strings.Clone(d.User), digest: strings.Clone(note)}, nil
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

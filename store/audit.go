package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"voicegw/store/witness"
)

const (
	// packBytes bounds one write in bytes. A pack is one message and therefore one sync of the
	// disk: lines that arrive while another pack is written go together.
	packBytes = 256 << 10
	// waitingAppends bounds how many callers wait in the queue; the next one waits for
	// room in it.
	waitingAppends = 256
)

// AuditStream is an ordered stream of lines that nobody changes. Lines older than
// Options.AuditAge are removed, and the oldest ones when there are more than
// Options.AuditBytes. Its methods may be used concurrently.
type AuditStream struct {
	// Fixed after openAudit.
	store   *Store
	stream  jetstream.Stream
	subject string
	// queue is from AppendAll to write. It is never closed; block(context).
	queue chan appended
	// ended is closed by write when it takes nothing more from the queue.
	ended chan struct{}
}

// appended are lines that one caller waits for, each with its line end.
type appended struct {
	lines []byte
	// stored is from write to the caller; its capacity holds the one answer.
	stored chan error
}

func (s *Store) openAudit(ctx context.Context) (*AuditStream, error) {
	storage := jetstream.FileStorage
	if s.o.Memory {
		storage = jetstream.MemoryStorage
	}
	a := &AuditStream{
		store: s, subject: s.o.Prefix + ".audit",
		queue: make(chan appended, waitingAppends), ended: make(chan struct{}),
	}
	var err error
	a.stream, err = s.openStream(ctx, witness.Audit, jetstream.StreamConfig{
		Name:        s.o.Prefix + "_audit",
		Description: "voicegw: audit, JSON lines",
		Subjects:    []string{a.subject},
		MaxAge:      s.o.AuditAge,
		MaxBytes:    s.o.AuditBytes,
		Discard:     jetstream.DiscardOld,
		Storage:     storage,
		Replicas:    s.o.Replicas,
		Duplicates:  min(2*time.Minute, s.o.AuditAge),
	})
	if err != nil {
		return nil, err
	}
	s.running.Go(a.write)
	return a, nil
}

// AppendAll stores lines, each without its line end, in their order, with as few syncs of the
// disk as there are packs of 256 KiB. All are durable when it returns. Lines of callers who wait
// at the same time are stored together, so many lines cost little more than one. The errors wrap
// ErrUnavailable, after which the first of the lines may have been stored, or ErrTooBig, or say
// why a line is invalid.
func (a *AuditStream) AppendAll(ctx context.Context, lines [][]byte) error {
	most := a.store.most()
	for _, line := range lines {
		if len(line) == 0 || bytes.IndexByte(line, '\n') >= 0 {
			return errors.New("store: what is appended to the audit must be one line, and not an empty one")
		}
		if len(line) >= most {
			return fmt.Errorf("%w: an audit line of %d bytes; the limit is %d", ErrTooBig, len(line), most-1)
		}
	}
	var pack []byte
	for i, line := range lines {
		pack = append(append(pack, line...), '\n')
		if i+1 < len(lines) && len(pack)+len(lines[i+1]) < packBytes {
			continue
		}
		if err := a.append(ctx, pack); err != nil {
			return err
		}
		pack = nil
	}
	return nil
}

// append hands lines to write and waits for its answer.
func (a *AuditStream) append(ctx context.Context, lines []byte) error {
	// The pack before this one may take its whole time too.
	bounded, cancel := context.WithTimeout(ctx, 2*a.store.o.Wait)
	defer cancel()
	item := appended{lines: lines, stored: make(chan error, 1)}
	select {
	case a.queue <- item:
	case <-bounded.Done():
		return fmt.Errorf("store: appending to the audit: %w: %w", ErrUnavailable, bounded.Err())
	case <-a.ended:
		return errClosed
	}
	select {
	case err := <-item.stored:
		return err
	case <-bounded.Done():
		return fmt.Errorf("store: appending to the audit: %w: %w", ErrUnavailable, bounded.Err())
	case <-a.ended:
	}
	select {
	case err := <-item.stored:
		return err
	default:
		return errClosed
	}
}

// write stores what is queued, until the Store is closed.
func (a *AuditStream) write() {
	defer close(a.ended)
	var left *appended // lines that did not fit in the pack before
	for {
		var item appended
		if left != nil {
			item = *left
		} else {
			select {
			case <-a.store.done:
				return
			case item = <-a.queue:
			}
		}
		var pack []appended
		pack, left = a.pack(item)
		err := a.publish(pack)
		for _, item := range pack {
			item.stored <- err
		}
	}
}

// pack takes queued lines that fit into one message together with first, and returns the
// lines that it took and that do not fit.
func (a *AuditStream) pack(first appended) (pack []appended, left *appended) {
	pack = []appended{first}
	for size := len(first.lines); ; {
		select {
		case item := <-a.queue:
			if size += len(item.lines); size > packBytes {
				return pack, &item
			}
			pack = append(pack, item)
		default:
			return pack, nil
		}
	}
}

// publish stores a pack as one message.
func (a *AuditStream) publish(pack []appended) error {
	data := pack[0].lines
	for _, item := range pack[1:] {
		data = append(data, item.lines...)
	}
	id := rand.Text() // by which the server knows a second attempt
	return a.store.within(context.Background(), a.store.o.Wait, "appending to the audit", func(ctx context.Context) error {
		_, err := a.store.js.Publish(ctx, a.subject, data, jetstream.WithMsgID(id))
		return err
	})
}

// Read passes f the lines that were stored from since on (by the server's clock, with the
// precision of one pack), in their order, up to the last line that existed when Read began.
// f must not keep line. Read returns f's error if there is one; its own errors wrap
// ErrUnavailable. Read as a whole has no time limit: it takes as long as f does, and gives
// up when nothing comes for 10 s.
func (a *AuditStream) Read(ctx context.Context, since time.Time, f func(line []byte) error) error {
	config := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}
	if !since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	var last uint64
	var reading *follower
	err := a.store.within(ctx, a.store.o.Wait, "reading the audit", func(ctx context.Context) error {
		var err error
		if last, err = a.last(ctx, since); err != nil || last == 0 {
			return err
		}
		reading, err = a.store.follow(ctx, a.stream.CachedInfo().Config.Name, config)
		return err
	})
	if err != nil || reading == nil {
		return err
	}
	defer reading.close()
	for {
		bounded, cancel := context.WithTimeout(ctx, silence)
		m, err := reading.next(bounded)
		cancel()
		if err != nil {
			return fmt.Errorf("store: reading the audit: %w", classed(ctx, err))
		}
		if m.seq > last {
			return nil // the last line was removed meanwhile
		}
		for line := range bytes.Lines(m.data) {
			if err := f(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return err
			}
		}
		if m.seq == last {
			return nil
		}
	}
}

// last returns the number of the newest message; 0 if it is older than since or the stream
// is empty. It asks the leader: a follower may be behind and cannot tell "not yet" from
// "nothing".
func (a *AuditStream) last(ctx context.Context, since time.Time) (uint64, error) {
	info, err := a.stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}
	m, err := a.stream.GetMsg(ctx, info.State.LastSeq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil // its life ended just now, and so did that of all before it
	case err != nil:
		return 0, err
	case m.Time.Before(since):
		return 0, nil
	}
	return info.State.LastSeq, nil
}

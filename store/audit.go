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

// packBytes bounds one write in bytes. A pack is one message and one disk sync.
const packBytes = 256 << 10

// AuditStream is an append-only stream of lines. Lines older than Options.AuditAge, and the oldest beyond 1 GiB, are
// removed.
type AuditStream struct {
	// Immutable.
	store   *Store
	stream  jetstream.Stream
	subject string
}

func (s *Store) openAudit(ctx context.Context) (*AuditStream, error) {
	a := &AuditStream{store: s, subject: prefix + ".audit"}
	var err error
	a.stream, err = s.openStream(ctx, witness.Audit, jetstream.StreamConfig{
		Name:        streamName(witness.Audit),
		Description: "voicegw: audit, JSON lines",
		Subjects:    []string{a.subject},
		MaxAge:      s.o.AuditAge,
		MaxBytes:    most{1 << 30, 64 << 20}.of(s.o),
		Discard:     jetstream.DiscardOld,
		Duplicates:  min(2*time.Minute, s.o.AuditAge),
	})
	return a, err
}

// AppendAll stores lines, given without line ends, in order, with a disk sync for each 256 KiB. All are durable when it
// returns. The errors wrap ErrUnavailable, after which the first lines may have been stored, or ErrTooBig, or describe an
// invalid line.
func (a *AuditStream) AppendAll(ctx context.Context, lines [][]byte) error {
	most := a.store.most()
	for _, line := range lines {
		if len(line) == 0 || bytes.IndexByte(line, '\n') >= 0 {
			return errors.New("store: an audit entry must be one non-empty line")
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

func (a *AuditStream) append(ctx context.Context, lines []byte) error {
	id := rand.Text() // identifies a repeated attempt
	return a.store.within(ctx, a.store.o.Wait, "appending to the audit", func(ctx context.Context) error {
		_, err := a.store.js.Publish(ctx, a.subject, lines, jetstream.WithMsgID(id))
		return err
	})
}

// Read calls f for each line stored since the given time (server clock, precise to a pack), in order, up to the last
// line that existed at the start. f must not keep line. Read returns f's error; its own wrap ErrUnavailable. It has no
// time limit, but gives up after 10 s without data.
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
		if m.revision > last {
			return nil // the last line has just been removed
		}
		for line := range bytes.Lines(m.data) {
			if err := f(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return err
			}
		}
		if m.revision == last {
			return nil
		}
	}
}

// last returns the number of the newest message; 0 without one, or if it is older than since. It asks the leader,
// because a follower may be behind.
func (a *AuditStream) last(ctx context.Context, since time.Time) (uint64, error) {
	info, err := a.stream.Info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}
	m, err := a.stream.GetMsg(ctx, info.State.LastSeq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil // it and all earlier ones have just expired
	case err != nil:
		return 0, err
	case m.Time.Before(since):
		return 0, nil
	}
	return info.State.LastSeq, nil
}

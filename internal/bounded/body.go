package bounded

import (
	"errors"
	"io"
	"sync"
)

type body struct {
	from  io.ReadCloser
	watch *watch
	bound Bound // the limit in bytes
	most  int64 // in bytes
	left  int64
	guard *guard // may be nil
	err   error  // final

	closing sync.Once
}

// Read implements io.Reader. An error is final.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more, to notice the excess
	}
	b.watch.wait()
	n, err := b.from.Read(p)
	b.watch.pause()
	over := int64(n) > b.left
	if over {
		n, err = int(b.left), b.watch.over(b.bound, b.most)
	}
	b.left -= int64(n)
	if bound, most := b.guard.see(p[:n]); bound != "" {
		err, over = b.watch.over(bound, most), true
		n = 0 // the excess must not be decoded
	}
	if err == nil {
		return n, nil
	}
	if !over && !errors.Is(err, io.EOF) {
		err = b.watch.why(err)
	}
	b.err = err
	if over {
		b.watch.cancel(err) // the server need not continue
	}
	b.watch.end()
	return n, err
}

// Close implements io.Closer. The rest of the answer is not read.
func (b *body) Close() error {
	var err error
	b.closing.Do(func() {
		// First, so that a transport that drains the body stops.
		if b.err == nil {
			b.watch.cancel(errClosed)
		}
		err = b.from.Close()
		b.watch.end()
	})
	return err
}

var errClosed = errors.New("the answer was closed before its end")

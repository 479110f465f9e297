package ws

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/coder/websocket"
)

// acceptKey is the answer to a handshake's key (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestMask: masking at once or in pieces of any length gives the RFC's result, and is its own inverse.
func TestMask(t *testing.T) {
	const key = 0x0d0c0b0a
	keyBytes := []byte{0x0a, 0x0b, 0x0c, 0x0d}
	for n := range 100 {
		plain := pattern(n)
		want := make([]byte, n)
		for i := range plain {
			want[i] = plain[i] ^ keyBytes[i%4]
		}
		for _, cut := range []int{0, min(1, n), n / 3, n} {
			got := bytes.Clone(plain)
			mask(got[cut:], mask(got[:cut], key))
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, cut at %d: %x, want %x", n, cut, got, want)
			}
		}
	}
}

// TestKeysDiffer: each frame has another key.
func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		f := maskedFrame(finBit, opText, nil)
		seen[string(f[2:6])] = true
	}
	if len(seen) < 99 {
		t.Errorf("%d keys in 100 frames", len(seen))
	}
}

// decoded is the content of a stream of frames.
type decoded struct {
	typ websocket.MessageType
	msg string
}

// listen returns the messages in a stream and the error that ended it.
func listen(r io.Reader, client bool) (all []decoded, err error) {
	c := over(&scripted{Reader: r, Writer: io.Discard}, client, Options{Limit: 1 << 16})
	for {
		typ, p, err := c.Read()
		if err != nil {
			return all, err
		}
		all = append(all, decoded{typ, string(p)})
	}
}

// FuzzRead: any input ends in an error without a panic, and has the same content in pieces of any size.
func FuzzRead(f *testing.F) {
	f.Add(append(maskedFrame(0, opText, []byte("hel")), maskedFrame(finBit, opContinuation, []byte("lo"))...), false)
	f.Add(maskedFrame(finBit, opBinary, pattern(70000)), false)
	f.Add(maskedFrame(finBit, opClose, []byte{3, 0xe8, 'o', 'k'}), false)
	f.Add([]byte{finBit | opText, 2, 'h', 'i', finBit | opPing, 0, finBit | opClose, 0}, true)
	f.Fuzz(func(t *testing.T, stream []byte, client bool) {
		whole, err := listen(bytes.NewReader(stream), client)
		if err == nil {
			t.Fatal("it does not end")
		}
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(stream)), iotest.HalfReader(bytes.NewReader(stream)), iotest.DataErrReader(bytes.NewReader(stream))} {
			cut, cutErr := listen(r, client)
			if !slices.Equal(cut, whole) || cutErr.Error() != err.Error() {
				t.Fatalf("uncut: %d messages, %v; cut: %d, %v", len(whole), err, len(cut), cutErr)
			}
		}
	})
}

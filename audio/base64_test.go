package audio_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"voicegw/audio"
)

func random(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestBase64AgreesWithStandardLibrary(t *testing.T) {
	for n := range 300 {
		raw := random(n, uint64(n))
		if got, want := audio.AppendBase64([]byte("x"), raw), "x"+base64.StdEncoding.EncodeToString(raw); string(got) != want {
			t.Fatalf("%d bytes: %q, want %q", n, got, want)
		}
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			checkDecode(t, []byte(enc.EncodeToString(raw)))
		}
	}
}

// reference decodes with the standard library the input that AppendFromBase64 must accept.
func reference(src []byte) ([]byte, error) {
	if bytes.ContainsAny(src, "\r\n") {
		return nil, errors.New("line break")
	}
	s := strings.NewReplacer("-", "+", "_", "/").Replace(string(src))
	if out, err := base64.StdEncoding.DecodeString(s); err == nil {
		return out, nil
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// checkDecode compares every way to call AppendFromBase64 with the reference.
func checkDecode(t *testing.T, src []byte) {
	t.Helper()
	want, wantErr := reference(src)
	orig := bytes.Clone(src)
	for name, dst := range map[string][]byte{
		"nil": nil, "full": []byte("head"), "roomy": append(make([]byte, 0, 4+len(src)), "head"...), "in place": src[:0],
	} {
		head := bytes.Clone(dst)
		in := src
		if name == "in place" {
			in = bytes.Clone(src)
			dst = in[:0]
		}
		got, err := audio.AppendFromBase64(dst, in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s: %q: error %v, the standard library returns %v", name, orig, err, wantErr)
		}
		if err != nil && !errors.Is(err, audio.ErrBase64) {
			t.Fatalf("%s: %q: error %v is not ErrBase64", name, orig, err)
		}
		if full := append(head, want...); err == nil && !bytes.Equal(got, full) {
			t.Fatalf("%s: %q: %x, want %x", name, orig, got, full)
		}
		if err != nil && !bytes.Equal(got, head) {
			t.Fatalf("%s: %q: an error changed dst to %q", name, orig, got)
		}
		if !bytes.Equal(src, orig) {
			t.Fatalf("%s: the source was changed", name)
		}
	}
}

func TestBase64Refuses(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(random(300, 1))
	for _, src := range []string{
		"A", "A=", "A===", "AA=", "=", "==", "====", "AAA==", "AAAA=", "AAAA====", "AA=A", "AA==AAAA", "AA!A", "AAAA\n", "\nAAAA",
		"AA\r\nAA", long[:100] + "\n" + long[100:], long[:101] + "!" + long[102:], long[:200] + "\n\n\n\n" + long[200:],
		long[:64] + "\n\n\n\n" + long[64:300] + "-_-_", "\x00AAA", "AAA\x80", long + "=",
	} {
		checkDecode(t, []byte(src))
		if _, err := audio.AppendFromBase64(nil, []byte(src)); !errors.Is(err, audio.ErrBase64) {
			t.Errorf("%q: error %v, want ErrBase64", src, err)
		}
	}
	for _, src := range []string{"", "AA", "AA==", "AB==", "-_+/", long[:200] + "-_" + long[202:]} {
		checkDecode(t, []byte(src))
		if _, err := audio.AppendFromBase64(nil, []byte(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func FuzzFromBase64(f *testing.F) {
	for _, n := range []int{0, 1, 2, 3, 31, 48, 100, 333} {
		f.Add([]byte(base64.StdEncoding.EncodeToString(random(n, 1))))
		f.Add([]byte(base64.RawURLEncoding.EncodeToString(random(n, 2))))
	}
	f.Add([]byte(strings.Repeat("AAAA", 30) + "\n" + strings.Repeat("-_-_", 30)))
	f.Add([]byte("AA=="))
	f.Fuzz(func(t *testing.T, src []byte) { checkDecode(t, src) })
}

func FuzzBase64RoundTrip(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(random(77, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		coded := audio.AppendBase64(nil, raw)
		if want := base64.StdEncoding.EncodeToString(raw); string(coded) != want {
			t.Fatalf("%q, want %q", coded, want)
		}
		if got, err := audio.AppendFromBase64(coded[:0], coded); err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("%x, %v", got, err)
		}
	})
}

func TestBase64DoesNotAllocate(t *testing.T) {
	raw := random(4800, 1)
	coded := make([]byte, 0, 6400)
	back := make([]byte, 0, 4800)
	if n := testing.AllocsPerRun(100, func() {
		coded = audio.AppendBase64(coded[:0], raw)
		back, _ = audio.AppendFromBase64(back[:0], coded)
		coded, _ = audio.AppendFromBase64(coded[:0], coded)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkBase64 compares the decoder with a plain copy and the standard library.
func BenchmarkBase64(b *testing.B) {
	for _, size := range []int{960, 4800} {
		raw := random(size, 1)
		coded := base64.StdEncoding.AppendEncode(nil, raw)
		url := base64.URLEncoding.AppendEncode(nil, raw)
		buf := make([]byte, 0, len(coded))
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for b.Loop() {
					f()
				}
			})
		}
		run("copy", func() { buf = append(buf[:0], raw...) })
		run("encode", func() { buf = audio.AppendBase64(buf[:0], raw) })
		run("encode std", func() { buf = base64.StdEncoding.AppendEncode(buf[:0], raw) })
		run("decode", func() { buf, _ = audio.AppendFromBase64(buf[:0], coded) })
		run("decode in place", func() {
			buf = append(buf[:0], coded...)
			buf, _ = audio.AppendFromBase64(buf[:0], buf)
		})
		run("decode url", func() { buf, _ = audio.AppendFromBase64(buf[:0], url) })
		run("decode std", func() { buf, _ = base64.StdEncoding.AppendDecode(buf[:0], coded) })
	}
}

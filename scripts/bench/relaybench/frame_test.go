//go:build linux

package main

import (
	"bytes"
	"slices"
	"testing"
)

// read returns what a frameReader finds in a stream that comes in pieces.
func read(pieces ...[]byte) (found []frame) {
	var r frameReader
	for _, p := range pieces {
		r.feed(p, func(f frame) {
			f.head = slices.Clone(f.head)
			found = append(found, f)
		})
	}
	return found
}

// TestFramesComeInPieces: however a stream is cut, the same frames are in it.
func TestFramesComeInPieces(t *testing.T) {
	var stream []byte
	sizes := []int{0, 1, 125, 126, 65535, 65536, 3}
	for i, n := range sizes {
		stream = appendFrame(stream, opBinary, bytes.Repeat([]byte{byte(i + 1)}, n), i%2 == 0)
	}
	for _, piece := range []int{1, 2, 7, 1000, len(stream)} {
		found := read(slices.Collect(slices.Chunk(stream, piece))...)
		if len(found) != len(sizes) {
			t.Fatalf("pieces of %d: %d frames, want %d", piece, len(found), len(sizes))
		}
		for i, f := range found {
			want := bytes.Repeat([]byte{byte(i + 1)}, min(sizes[i], maxHead))
			if f.opcode != opBinary || f.length != uint64(sizes[i]) || !bytes.Equal(f.head, want) {
				t.Errorf("pieces of %d: frame %d has opcode %d, %d bytes and begins with %v", piece, i, f.opcode, f.length, f.head[:min(len(f.head), 4)])
			}
		}
	}
}

// TestMaskedPayloads are read as they were meant.
func TestMaskedPayloads(t *testing.T) {
	masked := []byte{finBit | opPing, maskBit | 5, 1, 2, 3, 4, 'h' ^ 1, 'e' ^ 2, 'l' ^ 3, 'l' ^ 4, 'o' ^ 1}
	found := read(masked)
	if len(found) != 1 || string(found[0].head) != "hello" {
		t.Errorf("found %v", found)
	}
}

// FuzzFrameReader: whatever a relay sends, in whatever pieces, is read without a fault and
// the same.
func FuzzFrameReader(f *testing.F) {
	f.Add(appendFrame(nil, opText, []byte("hello"), true), 3)
	f.Add([]byte{0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255}, 1)
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		if piece < 1 || len(stream) == 0 {
			return
		}
		whole, cut := read(stream), read(slices.Collect(slices.Chunk(stream, piece))...)
		if len(whole) != len(cut) {
			t.Fatalf("%d frames whole, %d in pieces of %d", len(whole), len(cut), piece)
		}
		for i := range whole {
			if whole[i].opcode != cut[i].opcode || whole[i].length != cut[i].length || !bytes.Equal(whole[i].head, cut[i].head) {
				t.Errorf("frame %d: %v whole, %v in pieces", i, whole[i], cut[i])
			}
		}
	})
}

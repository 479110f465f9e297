package voice

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const ms = time.Millisecond

func line(audioMS int, words ...string) Line {
	l := Line{Audio: make([]byte, audioMS*48), BytesPerMS: 48}
	for i, w := range words {
		l.Words = append(l.Words, Word{Text: w, Start: time.Duration(i) * 300 * ms})
	}
	return l
}

func TestPartsComeInOrderAtSpeed(t *testing.T) {
	d := NewDelivery(line(600, "One", " two"), DeliveryOptions{ChunkMS: 250, FirstAudioMS: 100, Speed: 2})
	wantAt := []time.Duration{100 * ms, 225 * ms, 350 * ms}
	var words strings.Builder
	total := 0
	for i, want := range wantAt {
		due, ok := d.Due()
		p, got := d.Next()
		if !ok || !got || due != want {
			t.Fatalf("part %d: due %v, want %v", i, due, want)
		}
		for _, w := range p.Words {
			words.WriteString(w.Text)
		}
		total += len(p.Audio)
	}
	if _, ok := d.Next(); ok {
		t.Error("a part after the last one")
	}
	if words.String() != "One two" || total != 600*48 || d.Sent() != 600*ms || d.Duration() != 600*ms {
		t.Errorf("words %q, %d bytes, sent %v", words.String(), total, d.Sent())
	}
}

func TestWordsAheadOfAudio(t *testing.T) {
	l := line(500, "a", "b", "c", "d", "e", "f", "g") // the last two start at 1500 ms and 1800 ms, past the audio
	d := NewDelivery(l, DeliveryOptions{})
	p, _ := d.Next()
	if len(p.Words) != 5 { // before 250+1000
		t.Errorf("%d words with the first chunk, want 5", len(p.Words))
	}
	if p, _ = d.Next(); len(p.Words) != 2 {
		t.Errorf("%d words with the last chunk, want 2", len(p.Words))
	}
	if d = NewDelivery(l, DeliveryOptions{WordsWithAudio: true}); true {
		if p, _ = d.Next(); len(p.Words) != 1 {
			t.Errorf("%d words that begin in the first chunk, want 1", len(p.Words))
		}
	}
}

func TestPlayedInRealTimeFromTheFirstAudio(t *testing.T) {
	d := NewDelivery(line(1000, "x"), DeliveryOptions{FirstAudioMS: 100, Speed: 4})
	if d.PlayedOut() != 0 {
		t.Error("something is played before anything was sent")
	}
	d.Next()
	if d.PlayedOut() != 350*ms {
		t.Errorf("played out at %v, want 350ms", d.PlayedOut())
	}
	d.Next()
	if d.PlayedOut() != 600*ms {
		t.Errorf("played out at %v, want 600ms", d.PlayedOut())
	}
}

func TestStop(t *testing.T) {
	d := NewDelivery(line(1000, "one", " two", " three", " four"), DeliveryOptions{WordsWithAudio: true})
	d.Next()
	d.Stop()
	d.Stop()
	if _, ok := d.Due(); ok {
		t.Error("something is due after Stop")
	}
	if _, ok := d.Next(); ok {
		t.Error("a part after Stop")
	}
	if d.Sent() != 250*ms || d.SentText() != "one" || d.Text(700*ms) != "one two three" || d.Text(time.Hour) != "one two three four" {
		t.Errorf("sent %v %q", d.Sent(), d.SentText())
	}
}

func TestWordsAloneAndAllAtOnce(t *testing.T) {
	l := line(0, "one", " two")
	d := NewDelivery(l, DeliveryOptions{FirstAudioMS: -1, Speed: 3})
	if at, _ := d.Due(); at != 0 {
		t.Errorf("first word at %v", at)
	}
	d.Next()
	at, _ := d.Due()
	if p, ok := d.Next(); !ok || at != 100*ms || p.Words[0].Text != " two" || p.Audio != nil {
		t.Errorf("second part %+v at %v", p, at)
	}
	if _, ok := d.Next(); ok {
		t.Error("a third word")
	}
	d = NewDelivery(line(5000), DeliveryOptions{FirstAudioMS: -1, Speed: -1})
	for at, ok := d.Due(); ok; at, ok = d.Due() {
		if at != 0 {
			t.Fatalf("at %v, want everything at once", at)
		}
		d.Next()
	}
}

// TestOwnersTimer: the times are exact when the owner waits with an ordinary timer under a fake clock.
func TestOwnersTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDelivery(line(10_000, "x"), DeliveryOptions{Speed: 5})
		start := time.Now()
		for due, ok := d.Due(); ok; due, ok = d.Due() {
			<-time.After(time.Until(start.Add(due)))
			d.Next()
		}
		if took := time.Since(start); took != 200*ms+39*50*ms {
			t.Errorf("took %v", took)
		}
	})
}

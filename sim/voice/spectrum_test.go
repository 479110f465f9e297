package voice

import (
	"math"
	"testing"
)

// render makes the audio of bare phones at synthRate.
func render(phones string, ms float64) []float64 {
	segs := []segment{{ph: phSil, dur: 40}}
	for _, s := range mustSounds(phones) {
		segs = append(segs, segment{ph: s.ph, stress: 1, dur: ms, released: true})
	}
	segs = append(segs, segment{ph: phSil, dur: 40})
	tr := newTrack(segs)
	tune(tr, []phrase{{first: 1, last: len(segs) - 1, brk: fullStop}}, timbres[0])
	mouth := newTract(timbres[0])
	var out []float64
	for i := range tr.frames {
		out = mouth.run(&tr.frames[i], out)
	}
	return out
}

// energy returns the power of s between two frequencies.
func energy(s []float64, from, to float64) float64 {
	sum := 0.0
	for f := from; f < to; f += 50 {
		re, im := 0.0, 0.0
		for i, x := range s {
			w := x * (0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(len(s))))
			re += w * math.Cos(2*math.Pi*f*float64(i)/synthRate)
			im += w * math.Sin(2*math.Pi*f*float64(i)/synthRate)
		}
		sum += re*re + im*im
	}
	return sum
}

// at cuts the part from a to b ms out of s.
func at(s []float64, a, b int) []float64 { return s[a*synthRate/1000 : b*synthRate/1000] }

func TestFricatives(t *testing.T) {
	for _, c := range []struct {
		phone    string
		from, to float64
	}{{"S", 4000, 8000}, {"SH", 2000, 6000}} {
		s := at(render(c.phone+" IY", 150), 70, 160)
		in, all := energy(s, c.from, c.to), energy(s, 0, 8000)
		if in < 0.75*all {
			t.Errorf("%s has %.0f %% of its energy between %.0f and %.0f Hz, want most", c.phone, 100*in/all, c.from, c.to)
		}
	}
	s, f := render("S IY", 150), render("F IY", 150)
	if rms(at(s, 70, 160)) < 2*rms(at(f, 70, 160)) {
		t.Error("s is not much louder than f")
	}
	if rms(at(s, 70, 160)) > rms(at(s, 210, 300)) {
		t.Error("s is louder than its vowel")
	}
}

func rms(s []float64) float64 {
	sum := 0.0
	for _, x := range s {
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(s)))
}

func TestVowelsHaveTheirFormants(t *testing.T) {
	for _, name := range []string{"IY", "IH", "EH", "AE", "AH", "AA", "UH", "ER"} {
		p := mustSounds(name)[0].ph
		s := at(render(name, 300), 140, 240)
		got := peaks(s)
		for j := range 2 {
			want := (p.info().from[j] + p.info().to[j]) / 2
			if !near(got, want) {
				t.Errorf("%s: no formant within 10 %% of %.0f Hz among %.0f", name, want, got)
			}
		}
	}
}

func near(peaks []float64, want float64) bool {
	for _, p := range peaks {
		if math.Abs(p-want) < 0.1*want {
			return true
		}
	}
	return false
}

// peaks returns the peaks of the linear prediction spectrum of s below 4 kHz.
func peaks(s []float64) []float64 {
	const order = 18
	x := make([]float64, len(s))
	for i := 1; i < len(s); i++ {
		w := 0.54 - 0.46*math.Cos(2*math.Pi*float64(i)/float64(len(s)))
		x[i] = (s[i] - 0.97*s[i-1]) * w
	}
	var r [order + 1]float64
	for k := range r {
		for i := k; i < len(x); i++ {
			r[k] += x[i] * x[i-k]
		}
	}
	a := levinson(r[:])
	gain := func(f float64) float64 {
		re, im := 1.0, 0.0
		for k, c := range a {
			re += c * math.Cos(2*math.Pi*f*float64(k+1)/synthRate)
			im -= c * math.Sin(2*math.Pi*f*float64(k+1)/synthRate)
		}
		return 1 / (re*re + im*im)
	}
	var out []float64
	for f := 150.0; f < 4000; f += 10 {
		if gain(f) > gain(f-10) && gain(f) > gain(f+10) {
			out = append(out, f)
		}
	}
	return out
}

// levinson solves for the coefficients of linear prediction.
func levinson(r []float64) []float64 {
	n := len(r) - 1
	a := make([]float64, n)
	e := r[0]
	for i := range n {
		k := -r[i+1]
		for j := range i {
			k -= a[j] * r[i-j]
		}
		k /= e
		next := append([]float64(nil), a...)
		next[i] = k
		for j := range i {
			next[j] = a[j] + k*a[i-1-j]
		}
		a = next
		e *= 1 - k*k
	}
	return a
}

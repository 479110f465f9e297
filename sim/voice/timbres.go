package voice

import (
	"hash/fnv"
	"strings"
)

// timbres are the available voices.
var timbres = []timbre{
	{pitch: 110, size: 1.00, open: 0.50, tilt: 1.0, breath: 0.02, lively: 1.0},
	{pitch: 98, size: 0.96, open: 0.55, tilt: 1.1, breath: 0.01, lively: 0.9},
	{pitch: 125, size: 1.04, open: 0.60, tilt: 1.1, breath: 0.02, lively: 1.2},
	{pitch: 190, size: 1.15, open: 0.65, tilt: 1.0, breath: 0.04, lively: 1.0},
	{pitch: 172, size: 1.11, open: 0.65, tilt: 0.9, breath: 0.05, lively: 0.9},
	{pitch: 205, size: 1.17, open: 0.60, tilt: 1.1, breath: 0.03, lively: 1.2},
}

// named maps voice names of providers to timbres.
var named = map[string]int{
	"": 0, "alloy": 4, "ash": 0, "ballad": 1, "cedar": 1, "coral": 3, "echo": 0, "marin": 3, "sage": 4, "shimmer": 5, "verse": 2,
	"puck": 2, "charon": 1, "kore": 3, "fenrir": 0, "aoede": 5, "leda": 5, "orus": 0, "zephyr": 3,
}

// timbreOf returns the timbre of a voice name.
func timbreOf(name string) timbre {
	name = strings.ToLower(name)
	if i, ok := named[name]; ok {
		return timbres[i]
	}
	h := fnv.New32a()
	h.Write([]byte(name)) // writing to a hash never fails
	return timbres[int(h.Sum32()%uint32(len(timbres)))]
}

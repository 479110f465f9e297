//go:build !race

package main

// raceOn reports whether the race detector is on.
const raceOn = false

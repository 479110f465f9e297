//go:build !race

package ws

const raceOn = false

// Package freeport finds ports of this machine for tests that must know the port before
// they listen on it, or that listen on it twice.
//
// A port that the system has chosen may be given to the next connection as soon as it is
// closed. These lie outside the range that systems choose from.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The ports from first on lie below the dynamic ones of RFC 6335, section 6 (from 49152) and of
// Linux (ip_local_port_range, from 32768).
const (
	first = 20000
	many  = 12000
)

// next is the next candidate. Each process begins at a random one and goes on in order.
var next atomic.Int64

func init() { next.Store(rand.Int64N(many)) }

// Addr returns an address on 127.0.0.1 (host:port) without a listener, another one with each
// call. It may be called concurrently.
func Addr() (string, error) {
	var err error
	for range many {
		addr := net.JoinHostPort("127.0.0.1", strconv.FormatInt(first+next.Add(1)%many, 10))
		var ln net.Listener
		if ln, err = net.Listen("tcp", addr); err == nil {
			return addr, ln.Close()
		}
	}
	return "", fmt.Errorf("no port from %d to %d is free: %w", first, first+many-1, err)
}

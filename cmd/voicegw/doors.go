package main

import (
	"fmt"
	"net"
	"slices"

	"voicegw/config"
	"voicegw/internal/origin"
)

// doors returns the host names that requests may use, and the foreign pages that may connect. certified
// are the names of the certificates: a page cannot give the gateway another name over TLS.
func doors(cfg *config.Config, listen net.Addr, certified []string) (origin.Hosts, []origin.Pattern, error) {
	var hosts origin.Hosts
	if tcp, ok := listen.(*net.TCPAddr); ok {
		hosts.Listen = tcp.AddrPort().Addr()
	}
	for _, text := range slices.Concat(cfg.Hosts, cfg.TLS.ACME.Hosts, certified) {
		p, err := origin.ParseHostPattern(text)
		if err != nil {
			return hosts, nil, fmt.Errorf("hosts: %q %w", text, err)
		}
		hosts.Patterns = append(hosts.Patterns, p)
	}
	var origins []origin.Pattern
	for _, text := range cfg.Origins {
		p, _, err := origin.ParsePattern(text)
		if err != nil {
			return hosts, nil, fmt.Errorf("origins: %q %w", text, err)
		}
		origins = append(origins, p)
	}
	return hosts, origins, nil
}

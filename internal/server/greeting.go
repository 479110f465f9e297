package server

import (
	"fmt"
	"net"
	"strings"

	"voicegw/client/operator"
	"voicegw/config"
	"voicegw/internal/origin"
	"voicegw/internal/textutil"
)

// greet shows the next steps at a terminal. Otherwise the log has them.
func (s *Server) greet() {
	if _, ok := textutil.Width(s.host.Stderr); !ok {
		return
	}
	code := ""
	if s.certs != nil {
		code = s.gateway.ConsoleCode()
	} else if at, err := origin.ParseHost(Reachable(s.listener.Addr())); err == nil && at.Loopback() {
		code = s.gateway.ConsoleCode() // to another address the code would travel unencrypted
	}
	_, _ = fmt.Fprint(s.host.Stderr, greeting(s.cfg, s.listener.Addr(), s.host.Version, s.dataDir, code))
}

// greeting returns the text of greet. The code opens the console once and must not be logged.
func greeting(cfg *config.Config, addr net.Addr, version, dataDir, code string) string {
	var b strings.Builder
	host := named(cfg, Reachable(addr))
	fmt.Fprintf(&b, "\n  voicegw %s\n\n", version)
	fmt.Fprintf(&b, "  Talk to it       %s\n", operator.ConsoleLink(cfg.TLS.Scheme()+"://"+host, code))
	if code != "" {
		b.WriteString("                   (the link opens the console once, within 15 minutes; voicegw console makes another)\n")
	}
	fmt.Fprintf(&b, "  or from a shell  voicegw talk --url ws%s://%s/v1/voice --text \"Hello\"\n",
		strings.TrimPrefix(cfg.TLS.Scheme(), "http"), host)
	services := cfg.Services()
	names := make([]string, len(services))
	for i, service := range services {
		names[i] = service.Name
	}
	fmt.Fprintf(&b, "  Provider         %s\n", strings.Join(names, "; on request "))
	if dataDir != "" {
		fmt.Fprintf(&b, "  Data             %s\n", dataDir)
	}
	if services[0].Simulated {
		fmt.Fprintf(&b, "  Simulated        %s\n", simNotice(cfg))
	}
	return b.String() + "\n"
}

func simNotice(cfg *config.Config) string {
	if cfg.Sim.Use == config.UseAlways {
		return "sim.use is always, so the built-in simulator answers"
	}
	return "no provider has a key, so the built-in simulator answers; set GEMINI_API_KEY or OPENAI_API_KEY for a real one"
}

// Reachable returns an address that a client on this machine can use for a listener.
func Reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return fmt.Sprintf("localhost:%d", tcp.Port)
}

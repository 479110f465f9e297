package process

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The states of sd_notify(3).
const (
	ServiceReady     = "READY=1"
	ServiceReloading = "RELOADING=1" // until ServiceReady
	ServiceStopping  = "STOPPING=1"
	ServiceAlive     = "WATCHDOG=1"
)

// ServiceManager is the service manager that started this program. The zero value ignores all states. Its methods may be
// called concurrently.
type ServiceManager struct {
	socket   string
	watchdog time.Duration
}

// FindServiceManager returns the manager named in environ, a list of NAME=VALUE. The error names an invalid variable;
// the manager is usable without it.
func FindServiceManager(environ []string) (ServiceManager, error) {
	var m ServiceManager
	var every, pid string
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case "NOTIFY_SOCKET":
			m.socket = value
		case "WATCHDOG_USEC":
			every = value
		case "WATCHDOG_PID":
			pid = value
		}
	}
	if m.socket != "" && m.socket[0] != '/' && m.socket[0] != '@' {
		bad := m.socket
		m.socket = ""
		return m, fmt.Errorf("NOTIFY_SOCKET is %.80q, want a path or an abstract name (@…); the service manager gets no messages", bad)
	}
	// There is no watchdog without a socket, or if it is meant for another process.
	if every == "" || m.socket == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	usec, err := strconv.ParseInt(every, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return m, fmt.Errorf("WATCHDOG_USEC is %.40q, want a number of microseconds up to a day; the watchdog gets no messages", every)
	}
	m.watchdog = time.Duration(usec) * time.Microsecond
	return m, nil
}

// WatchdogInterval is the interval for sending ServiceAlive: half of the manager's timeout. Zero means never.
func (m ServiceManager) WatchdogInterval() time.Duration { return m.watchdog / 2 }

// Tell sends states, such as ServiceReady, in one message. Without a manager it does nothing.
func (m ServiceManager) Tell(states ...string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", m.socket)
	if err != nil {
		return fmt.Errorf("notify the service manager of %s: %w", states[0], err)
	}
	_, err = conn.Write([]byte(strings.Join(states, "\n")))
	if closed := conn.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("notify the service manager of %s: %w", states[0], err)
	}
	return nil
}

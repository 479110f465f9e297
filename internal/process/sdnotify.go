package process

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The states that a program tells of itself.
const (
	ServiceReady     = "READY=1"
	ServiceReloading = "RELOADING=1" // until it is ServiceReady again
	ServiceStopping  = "STOPPING=1"
	ServiceAlive     = "WATCHDOG=1"
)

// ServiceManager is the service manager. The zero value is a program that no manager has started: it tells
// nobody anything. Its methods may be called concurrently.
type ServiceManager struct {
	socket   string
	watchdog time.Duration
}

// FindServiceManager returns the manager that the environment, a list of NAME=VALUE, speaks of. The
// error names a variable that the program cannot use; the manager tells what it can all the same.
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
		return m, fmt.Errorf("NOTIFY_SOCKET is %.80q, and only a path or an abstract name (@…) can be used; the service manager is told nothing", bad)
	}
	// Without a socket nobody waits for a sign of life; and one that is meant for another process is not
	// this one's to give.
	if every == "" || m.socket == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return m, nil
	}
	usec, err := strconv.ParseInt(every, 10, 64)
	if err != nil || usec <= 0 || usec > int64(24*time.Hour/time.Microsecond) {
		return m, fmt.Errorf("WATCHDOG_USEC is %.40q, and must be a number of microseconds up to a day; the watchdog gets no sign of life", every)
	}
	m.watchdog = time.Duration(usec) * time.Microsecond
	return m, nil
}

// WatchdogInterval is how often the manager must be told ServiceAlive: half of the time after which it
// believes the program dead. Zero means never.
func (m ServiceManager) WatchdogInterval() time.Duration { return m.watchdog / 2 }

// Tell sends states, such as ServiceReady, in one message. Without a manager it does nothing.
func (m ServiceManager) Tell(states ...string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", m.socket)
	if err != nil {
		return fmt.Errorf("the service manager cannot be told %s: %w", states[0], err)
	}
	_, err = conn.Write([]byte(strings.Join(states, "\n")))
	if closed := conn.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("the service manager cannot be told %s: %w", states[0], err)
	}
	return nil
}

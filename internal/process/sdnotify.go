package process

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
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

// FindServiceManager returns the manager named in the environment. The error names an invalid variable; the manager is
// usable without it.
func FindServiceManager(variable func(name string) string) (ServiceManager, error) {
	m := ServiceManager{socket: variable("NOTIFY_SOCKET")}
	every, pid := variable("WATCHDOG_USEC"), variable("WATCHDOG_PID")
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

// Tell sends a state, such as ServiceReady. Without a manager it does nothing.
func (m ServiceManager) Tell(state string) error {
	if m.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", m.socket)
	if err != nil {
		return fmt.Errorf("notify the service manager of %s: %w", state, err)
	}
	_, err = conn.Write([]byte(state))
	if err = cmp.Or(err, conn.Close()); err != nil {
		return fmt.Errorf("notify the service manager of %s: %w", state, err)
	}
	return nil
}

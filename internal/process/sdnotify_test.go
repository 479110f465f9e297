package process_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"voicegw/internal/process"
)

// in returns the last value of a variable in an environment.
func in(environ ...string) func(string) string {
	return func(name string) (value string) {
		for _, one := range environ {
			if v, is := strings.CutPrefix(one, name+"="); is {
				value = v
			}
		}
		return value
	}
}

func TestNotices(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	m, err := process.FindServiceManager(in("HOME=/", "NOTIFY_SOCKET="+socket))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tell(process.ServiceReady); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 200)
	n, err := manager.Read(got)
	if want := "READY=1"; err != nil || string(got[:n]) != want {
		t.Errorf("got %q, %v; want %q", got[:n], err, want)
	}
}

func TestWithoutAManager(t *testing.T) {
	m, err := process.FindServiceManager(in("WATCHDOG_USEC=1000000"))
	if err != nil || m.WatchdogInterval() != 0 {
		t.Errorf("interval %v, error %v", m.WatchdogInterval(), err)
	}
	if err := m.Tell(process.ServiceReady); err != nil {
		t.Error(err)
	}
}

func TestUnreachableManager(t *testing.T) {
	m, err := process.FindServiceManager(in("NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tell(process.ServiceStopping); err == nil || !strings.Contains(err.Error(), process.ServiceStopping) {
		t.Errorf("error %v, want one that names the state", err)
	}
}

func TestEnvironment(t *testing.T) {
	const socket = "NOTIFY_SOCKET=/run/notify"
	for name, test := range map[string]struct {
		environ []string
		every   time.Duration
		wrong   string // part of the error
	}{
		"a watchdog":              {environ: []string{socket, "WATCHDOG_USEC=30000000"}, every: 15 * time.Second},
		"this process":            {environ: []string{socket, "WATCHDOG_USEC=30000000", "WATCHDOG_PID=" + strconv.Itoa(os.Getpid())}, every: 15 * time.Second},
		"another process":         {environ: []string{socket, "WATCHDOG_USEC=30000000", "WATCHDOG_PID=1"}},
		"no watchdog":             {environ: []string{socket}},
		"not a number":            {environ: []string{socket, "WATCHDOG_USEC=30s"}, wrong: "WATCHDOG_USEC"},
		"negative":                {environ: []string{socket, "WATCHDOG_USEC=-1"}, wrong: "WATCHDOG_USEC"},
		"more than time can hold": {environ: []string{socket, "WATCHDOG_USEC=9223372036854775807"}, wrong: "WATCHDOG_USEC"},
		"a socket of the network": {environ: []string{"NOTIFY_SOCKET=vsock:2:1234", "WATCHDOG_USEC=30000000"}, wrong: "NOTIFY_SOCKET"},
		"an abstract socket":      {environ: []string{"NOTIFY_SOCKET=@manager", "WATCHDOG_USEC=2000000"}, every: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := process.FindServiceManager(in(test.environ...))
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("error %v, want one about %q", err, test.wrong)
			}
			if m.WatchdogInterval() != test.every {
				t.Errorf("interval %v, want %v", m.WatchdogInterval(), test.every)
			}
		})
	}
}

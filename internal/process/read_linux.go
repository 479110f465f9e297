package process

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// Read returns a process's resource usage from /proc. pid 0 means the current process.
func Read(pid int) (Usage, error) {
	self := pid == 0
	if self {
		pid = os.Getpid()
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	stat, err := p.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	u := Usage{
		CPU: time.Duration(stat.CPUTime() * float64(time.Second)), RSS: int64(stat.ResidentMemory()),
		Threads: stat.NumThreads, FDs: -1,
	}
	if entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd"); err == nil {
		u.FDs = len(entries)
		if self {
			u.FDs-- // the descriptor of this listing
		}
	}
	return u, nil
}

// ownGroup makes a program a process group of its own, which ends with this program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

package nonblock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// send and receive never wait, so the scheduler need not know of them: as ordinary system calls they would cost a
// twentieth more, and after 20 us the scheduler would give the loop's processor away. Unlike write(2) and read(2), they
// do not pass through the file layer.

func send(fd int, p []byte) (int, unix.Errno) {
	return transfer(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func receive(fd int, p []byte) (int, unix.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

// transfer repeats an interrupted call.
func transfer(call uintptr, fd int, p []byte, flags uintptr) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

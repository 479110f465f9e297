// Package process reads what a process on this machine takes: CPU, memory, threads and
// descriptors from /proc, which Linux alone has, and what a Go program tells of itself at
// its debug address.
package process

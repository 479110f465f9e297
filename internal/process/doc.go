// Package process reports a process's resource usage (from /proc on Linux and from a Go program's debug address), serves
// that debug address, notifies the service manager, and watches files that are replaced at run time.
package process

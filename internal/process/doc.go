// Package process reports the resources of a process (from /proc on Linux, and from the debug address of a Go program),
// serves that debug address, and notifies the service manager.
package process

// Package process reports the resources of a process (from /proc on Linux, and from the debug address of a Go program),
// serves that debug address, notifies the service manager, and watches files that are replaced while the program runs.
package process

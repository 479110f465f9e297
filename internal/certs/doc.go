// Package certs holds the certificates that a server shows to its clients: those of files, which may
// change while it runs, and those that it orders from a certificate authority by ACME (RFC 8555).
package certs

// Package certs provides a server's TLS certificates, from files that may change at run time or ordered by ACME (RFC
// 8555).
package certs

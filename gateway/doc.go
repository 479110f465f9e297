// Package gateway is the HTTP side of voicegw: routes, admission, health and the console.
package gateway

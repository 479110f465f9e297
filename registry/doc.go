// Package registry is what tools are to the gateway. So far it holds the
// envelope, the one form in which a tool's answer reaches a model.
package registry

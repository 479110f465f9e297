// Package terminal holds what programs at a terminal share: how wide it is, tables, texts
// of strangers that must not steer it, and lines that somebody types.
package textutil

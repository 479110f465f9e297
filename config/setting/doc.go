// Package setting has the types of settings that are more than a text or a number: secrets, paths and
// files. Their values may be copied and used concurrently.
package setting

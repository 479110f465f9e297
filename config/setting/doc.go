// Package setting has the types of settings that are more than a text or a number (secrets, paths, files), whose values may
// be copied and used concurrently, and the defaults that config and other packages share.
package setting

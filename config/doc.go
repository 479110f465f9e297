// Package config is the configuration of the gateway: one struct, read from a
// YAML file, the environment and the command line, each overriding the one
// before it.
//
// Every setting has a key such as "limits.sessions", written nested in the file,
// as VOICEGW_LIMITS_SESSIONS in the environment and as --set limits.sessions=…
// on the command line. [Load] reports all that is wrong at once, as [Problems].
// docs/configuration.md tells the keys; a test compares the two.
//
// Only cmd/voicegw imports this package: the others have options of their own.
package config

// Package config is the configuration of the gateway: one struct, read from a YAML file, the environment and the
// command line, each overriding the previous one.
//
// Every setting has a key such as "limits.sessions", written nested in the file, as VOICEGW_LIMITS_SESSIONS in the
// environment and as --set limits.sessions=… on the command line. [Load] reports all problems at once, as [Problems].
// docs/configuration.md lists the keys; a test compares the two. [Wires] lists the protocols of providers.
//
// Only cmd/voicegw imports this package: other packages have options of their own. Package setting has the types of
// settings.
package config

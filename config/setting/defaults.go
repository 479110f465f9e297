// Package setting has the types of settings that are more than a text or a number (secrets, paths, files), whose values may
// be copied and used concurrently, and the defaults that config and other packages share.
package setting

import "time"

// The constants of this file are defaults that package config documents and that another package uses for a zero option, so
// that each is written once.

// AgentName is the agent's name.
const AgentName = "default"

// The limits of the tool calls of one user's turn: retrievals, calls in all, results of a
// retrieval, and the time of all tools together. In text the tools' time has no limit.
const (
	VoiceRetrievals = 2
	VoiceCalls      = 3
	VoiceTopK       = 3
	VoiceToolTime   = 1500 * time.Millisecond

	TextRetrievals = 5
	TextCalls      = 10
	TextTopK       = 10
)

// The questions for an approval: how long one can be answered, and how many may remain
// unapproved in a conversation, about one tool and about all.
const (
	QuestionLife     = 5 * time.Minute
	QuestionsPerTool = 3
	Questions        = 10
)

// The limits of voice sessions, and of connections.
const (
	Sessions              = 1000
	SessionsPerAddress    = 100
	NewSessionsPerSecond  = 20 // for one address
	WaitingSessions       = 500
	WaitingPerAddress     = 50
	ClientTools           = 16 // that a client may declare
	AudioAhead            = 5 * time.Second
	SlowClient            = 5 * time.Second
	Connections           = 4000
	ConnectionsPerAddress = 200
)

// The limits of the messages of text conversations.
const (
	Turns             = 200
	TurnsPerAddress   = 40
	TurnsPerUser      = 10
	NewTurnsPerSecond = 20 // for one address, and for one user
)

// PhoneCalls limits the calls that the gateway begins in a minute.
const PhoneCalls = 10

// MCPCalls limits the calls of MCP clients in a minute, by key.
const MCPCalls = 60

// How much is kept: the audit's files and stream, images, and the store's replicas.
const (
	AuditFileMB = 100
	AuditFiles  = 10
	AuditAge    = 30 * 24 * time.Hour
	// SpeechTimeout is the time for the audio of an exact sentence.
	SpeechTimeout = 10 * time.Second
	ImageLife     = 24 * time.Hour
	Images        = 1000
	ImageMB       = 1024
	Replicas      = 1
)

// SlowAnswer is how long an answer may take to begin before its turn is worth a look in the traces.
const SlowAnswer = 2 * time.Second

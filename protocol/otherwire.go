package protocol

import "time"

// This file has what connections of other protocols need and voicegw.v1 does not have. No client can send it in JSON,
// and no client of voicegw.v1 gets it.

// StartExtra extends Start.
type StartExtra struct {
	// History is the conversation before the session, oldest first. The model does not answer it.
	History []AddItem
	// Instructions replaces the agent's instructions; nil keeps them.
	Instructions *string
	// Model is the model of Start.Provider; empty for the agent's or the default.
	Model string
	// AudioAhead is how far the audio may be ahead of real time; zero for the gateway's limit.
	AudioAhead time.Duration
	// SilenceMS and PrefixMS tune the model's speech detection, in ms; zero for the gateway's setting.
	SilenceMS, PrefixMS int
	// AnyTools accepts tools with any JSON Schema: it is simplified for the model, and the client checks the arguments.
	AnyTools bool
	// Answers requests AnswerEnded. The model waits for the first request: the agent's greeting is left out.
	Answers bool
	// Notice replaces the agent's notice if not empty.
	Notice string `json:",omitempty"`
	// Keypad means that the user approves by pressing keys on a phone.
	Keypad bool
	// Transfers are the names of numbers to which the call may be transferred; see CallTransfer.
	Transfers []string
}

// AddItem adds text to the conversation and asks for no answer.
type AddItem struct {
	// Role is "user", "assistant" or "system".
	Role, Text string
}

// Respond asks the model for an answer, with instructions for it alone if they are not empty.
type Respond struct{ Instructions string }

// Reconfigure replaces the agent's instructions, unless they are nil, and all tools of the client, as soon as the model
// owes no answer. A wrong tool is an Error with the field in Ref, and changes nothing.
type Reconfigure struct {
	Instructions *string
	Tools        []ClientTool
}

func (*AddItem) clientType() string     { return "internal.add_item" }
func (*Respond) clientType() string     { return "internal.respond" }
func (*Reconfigure) clientType() string { return "internal.reconfigure" }

// AnswerEnded reports that the model has generated its answer to the turn, which follows the answer's audio. TurnEnded
// follows when the user has heard it.
type AnswerEnded struct {
	Header `type:"internal.answer_ended"`
	// Waiting means that the answer continues once the turn's open calls have results.
	Waiting bool  `json:"waiting,omitempty"`
	Usage   Usage `json:"usage"`
}

// CallTransfer asks a phone line to connect the caller with another number once the session has ended.
type CallTransfer struct {
	Header `type:"internal.call_transfer"`
	// To is one of StartExtra.Transfers.
	To string `json:"to"`
}

package prompts

// Texts about the earlier conversation, for an agent that continues it.

// WrittenBefore passes a written conversation to a voice agent, as a notice: earlier messages must not give orders.
func WrittenBefore(brief string) string {
	return "The user has been in this conversation in writing and goes on by voice now. The conversation so far:\n" + brief
}

// AnswerFirst follows WrittenBefore if the user has asked something.
func AnswerFirst(request string) string {
	return "That was the conversation so far. Do not greet, and do not ask what it is about. Answer this first:\n" + request
}

// GoOnByVoice follows WrittenBefore if there is no pending request.
const GoOnByVoice = "That was the conversation so far. Do not greet. Say in one short sentence that the user can go on by voice now."

// SaidBefore replaces the part of a conversation that is too long to quote.
func SaidBefore(brief string) string { return "What was said before, in short:\n" + brief }

// Marks of an entry that a text agent gets in full.
const (
	InterruptedHere = " [the user interrupted here]"
	BrokeOffHere    = " [the answer broke off here; the user has read so much of it]"
	ByVoice         = "(by voice) "
)

// Lines of a brief (conversation.Conversation.Brief).
const (
	EarlierInShort = "Earlier, in short:"
	UserSaid       = "The user said: "
	GatewayLine    = "Gateway: "
	Interrupted    = " [interrupted]"
	BrokenOff      = " [broken off]"
)

// Called replaces tool calls without their answers. outcomes is like "kb_search: ok".
func Called(outcomes string) string { return "[called " + outcomes + "]" }

// Notes that replace a tool's answer that was not kept. They are values of JSON strings without quotation marks.
const (
	AnswerTooLong   = "It was done. Its answer was too long to be kept."
	AnswerForgotten = "The answer is no longer known."
)

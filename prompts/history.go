package prompts

// Texts about the earlier conversation, for an agent that continues it.

// WrittenBefore gives a voice agent the text conversation. It is a notice and not part of the system text, because
// earlier messages are not instructions.
func WrittenBefore(brief string) string {
	return "The user has been in this conversation in writing and goes on by voice now. The conversation so far:\n" + brief
}

// AnswerFirst follows WrittenBefore if the user has a pending request.
func AnswerFirst(request string) string {
	return "That was the conversation so far. Do not greet, and do not ask what it is about. Answer this first:\n" + request
}

// GoOnByVoice follows WrittenBefore if there is no pending request.
const GoOnByVoice = "That was the conversation so far. Do not greet. Say in one short sentence that the user can go on by voice now."

// SaidBefore summarises the truncated part of a conversation.
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

// Called replaces tool calls without their answers. outcomes lists calls and outcomes, such as "kb_search: ok".
func Called(outcomes string) string { return "[called " + outcomes + "]" }

// Notes that replace a tool's answer that was not kept. They are values of JSON strings without quotation marks.
const (
	AnswerTooLong   = "It was done. Its answer was too long to be kept."
	AnswerForgotten = "The answer is no longer known."
)

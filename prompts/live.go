package prompts

import (
	"fmt"
	"strconv"
	"strings"
)

// Texts for a voice that has no tools and delegates to a text model, and for that text model. See docs/live.md.

// VoiceOnly follows the instructions of such a voice.
const VoiceOnly = "How you work: you are the voice of this assistant, and you have no tools yourself. An assistant behind you " +
	"has them. Delegate every request that needs a tool, the knowledge base, data of the user or any action, also a " +
	"confirmation of one. While it works, say at most one short sentence, and never that something has been done. Only its " +
	"answer tells you what was done: say that, and nothing that it does not say. If you have promised something and not " +
	"delegated it, delegate it now."

// BehindVoice follows the instructions of the text model.
const BehindVoice = "How you work: a voice model talks to the user and hands over to you what needs tools. You do the work, and " +
	"it says your answer aloud in its own words. Call the tools that you need. Then answer in a few short sentences that can " +
	"be spoken: no lists, no markup, no addresses of pages. Say plainly what was done, what was not done, and what needs the " +
	"user's approval. If something is missing, answer with the question that the user must be asked. Everything the user said " +
	"was transcribed and may have mistakes. The last message is the request that was handed over: do it now."

// OpenRequests follows the instructions of the text model while it works on earlier requests, numbered from 1.
func OpenRequests(open []string) string {
	text := "You still work on these earlier requests, so do not do them again:"
	for i, o := range open {
		text += fmt.Sprintf(" (%d) %s", i+1, strconv.Quote(o))
	}
	return text + ". If the user has replaced or taken back one of them, first call drop_request with its number."
}

// UnknownRequest asks the text model for an answer if the user's words are unknown.
const UnknownRequest = "The voice has handed over to you what the user wants now, but the words were not transcribed."

// HandedOverAgain is the text model's request if the user has said nothing since the last one.
const HandedOverAgain = "The voice has asked you again, although the user has said nothing new. Do only the unfinished part of the " +
	"user's requests, and nothing that is done or that you are working on."

// DropRequest describes the tool drop_request of OpenRequests.
const DropRequest = "Drops an earlier request that the user has replaced or taken back: its result is not said aloud. What it " +
	"has begun is not stopped."

// DropRequestNumber describes its argument.
const DropRequestNumber = "The number of the earlier request."

// Dropped and NotDropped are its answers.
const (
	Dropped    = "It is dropped: its result will not be said."
	NotDropped = "There is no such request."
)

// AnswerToSay begins an earlier answer of the text model. The checks may have let the voice say only a part of it.
const AnswerToSay = "You gave the voice this answer to say, and the user may have heard only a part of it: "

const entered = "This was not spoken, but takes the place of the user's next words. Answer it aloud now, or delegate it: "

// Entered gives a voice a text in place of the user's speech.
func Entered(text string) string { return entered + text }

// EnteredText returns the text of Entered, for the simulator; other texts unchanged.
func EnteredText(text string) string { return strings.TrimPrefix(text, entered) }

// Known gives a voice an entry of the conversation.
func Known(who, text string) string {
	return "Part of this conversation, for you to know (" + who + "): " + text
}

// Who said an entry of Known.
const (
	KnownUser      = "the user"
	KnownAssistant = "you"
	KnownNote      = "a note"
)

// Texts about one text, or a language. Do not change them.
var (
	// SpeakLanguage follows the instructions of a voice if the language is known, as a BCP 47 tag.
	SpeakLanguage = text("Speak the language with the tag %s, unless the user speaks another one.")
	// StillWorking gives a voice the text model's words before the tools have answered.
	StillWorking = text("The assistant behind you still works on it. So far, for you to know only: %s")
	// OvertakenAnswer gives a voice an answer about an approval request after the user has decided it.
	OvertakenAnswer = text("The following is about an approval request that the user has already answered, and you know the " +
		"outcome. Say it only if the user asks: %s")
	// UserDecided reports to the working text model that the user has decided an approval request. The voice gets the same text.
	UserDecided = text("The user has just answered an approval request. The voice tells the user the outcome; you need not: %s")
	// OwedResult asks a voice for a result that it has not said.
	OwedResult = text("The user has not heard this result from you. Say it now: %s")
)

// DroppedResult gives a voice the result of a request that the user has replaced.
func DroppedResult(words, text string) string {
	return "The user has replaced or taken back the request " + strconv.Quote(words) + ". What came of it, for you to know, to say " +
		"only if the user asks: " + text
}

// The voice's words for a delegation without a result.
const (
	DelegationFailed = "This could not be looked into, because the assistant behind you cannot be reached. Tell the user in one " +
		"short sentence that it did not work, that nothing more is being done about it, and that they can ask again."
	DelegationRefused = "The assistant behind you gave no answer to this. Tell the user in one short sentence that you cannot help " +
		"with it."
	DelegationBusy = "Too many requests are being worked on already. Tell the user in one short sentence to wait for those, and " +
		"to ask again then."
)

// OwedDelegation reminds a voice that has neither answered nor delegated.
const OwedDelegation = "The user's last request was not delegated. If it needs a tool, or if you have said that you do it or have done " +
	"it, delegate it now, or tell the user in one sentence that it has not been done. If you have not answered at all, answer " +
	"now. If nothing is owed, say nothing."

// Unfinished lists for a voice on a new connection the requests whose results will come.
func Unfinished(words []string) string {
	return "These requests of the user were being worked on: " + quoted(words) + ". Results of tools will be told to you. " +
		"Delegate what is still missing then, and nothing that has a result."
}

// Continued lists for a voice on a new connection the requests that are still being worked on.
func Continued(words []string) string {
	return "The assistant behind you still works on these requests of the user: " + quoted(words) + ". You will get its answers: do " +
		"not delegate these requests again."
}

// HistoryCut replaces the beginning of a conversation that is too long for a new connection.
func HistoryCut(entries int) string {
	return fmt.Sprintf("The first %d entries of this conversation are missing here. If the user refers to them, say that you do not "+
		"have them at hand, or delegate the question.", entries)
}

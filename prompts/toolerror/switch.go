package toolerror

import "fmt"

// goOnYourself is what a model does that may not hand its user over.
const goOnYourself = "Go on with the user yourself, and say what you cannot do."

// SwitchBack refuses to hand the user back to an agent that has handed them over, before the user has
// said anything.
func SwitchBack(agent string) Words {
	return Words{fmt.Sprintf("The agent %s has just handed the user over, and the user has said nothing since.", agent), goOnYourself}
}

// SwitchedTooOften refuses another switch. within is "this turn" or "this conversation", most how many
// it may have.
func SwitchedTooOften(most int, within string) Words {
	return Words{fmt.Sprintf("The agent has changed %d times in %s, and that is as often as it may.", most, within), goOnYourself}
}

// SwitchUnderWay refuses a second switch beside one that has not ended.
func SwitchUnderWay() Words {
	return Words{"The user is being handed over to an agent already.", "Wait for that."}
}

// SwitchNotPossible refuses a switch that this conversation cannot make. why is the reason, as the
// end of a sentence.
func SwitchNotPossible(agent, why string) Words {
	return Words{fmt.Sprintf("The agent %s cannot go on with this conversation: %s.", agent, why), goOnYourself}
}

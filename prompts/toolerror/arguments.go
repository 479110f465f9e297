package toolerror

import "fmt"

// NoSuchTool answers a call of a tool that does not exist.
func NoSuchTool(tool string) Words {
	return Words{fmt.Sprintf("There is no tool named %q.", tool), answerWithout}
}

// UseAnotherTool is the suggestion of NoSuchTool if there are tools. hint is empty or
// "; did you mean …?", names lists the tools.
func UseAnotherTool(hint, names string) string {
	return fmt.Sprintf("Use one of the tools there are%s: %s. Or answer the user without any.", hint, names)
}

// NoGuide answers a call of describe_tool about a tool that does not exist. names lists
// the tools that the model may call.
func NoGuide(tool, names string) Words {
	return Words{fmt.Sprintf("There is no tool named %q here.", tool), "The tools are: " + names + "."}
}

// WrongMode answers a call of a tool that is not for this mode. allowed names the modes
// for which it is, such as "text and voice".
func WrongMode(tool, mode, allowed string) Words {
	return Words{
		fmt.Sprintf("The tool %s cannot be used in %s mode.", tool, mode),
		"Answer the user without it, or tell them where it can be used: in " + allowed + " mode.",
	}
}

// InvalidArguments answers a call whose arguments are invalid. problems says what is
// wrong with which of them.
func InvalidArguments(tool, problems string) Words {
	return Words{
		fmt.Sprintf("The arguments of %s are not valid: %s.", tool, problems),
		fmt.Sprintf("Correct what details.errors names and call %s again.", tool),
	}
}

// NotAnObject answers a call of a client's tool whose arguments are not a JSON object.
func NotAnObject(tool string) Words {
	return Words{"The arguments of " + tool + " are no JSON object.", "Call it again with a JSON object."}
}

package toolerror

import "fmt"

// NoNestedCalls refuses a call by a tool outside of a conversation, or after its own call has ended.
func NoNestedCalls(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: there is no running call in a conversation that could call it.", tool), ""}
}

// TooManyNested refuses a call by a tool beyond the bound for one call of the model.
func TooManyNested(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: one call may lead to %d calls of other tools, and they are used up.", tool, most), ""}
}

// TooDeep refuses a call by a tool that is itself called by too many others in a row.
func TooDeep(tool string, most int) Words {
	return Words{fmt.Sprintf("%s was not run: calls may be within one another %d deep.", tool, most), ""}
}

// CallsItself refuses a call by a tool that would go round in a circle.
func CallsItself(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: it is calling already, and would call itself.", tool), ""}
}

// CallerDoesNotWrite refuses a call of a tool that writes by one that says that it does not.
func CallerDoesNotWrite(tool, caller string) Words {
	return Words{fmt.Sprintf("%s was not run: it writes, and %s, which calls it, says that it does not.", tool, caller), ""}
}

// NotByTools refuses a call by a tool of one that only a model can call.
func NotByTools(tool string) Words {
	return Words{fmt.Sprintf("%s was not run: tools cannot call it.", tool), ""}
}

package toolerror

// Overtaken answers a call that is still running when the user's next turn has come.
func Overtaken(tool string) Words {
	return Words{
		"The user went on before " + tool + " had finished. It is still running, and its result will not be sent.",
		"Answer what the user says now. Call it again only if the user still wants it.",
	}
}

// OvertakenQuestion is Overtaken for a call whose question to the user is being recorded.
func OvertakenQuestion(tool string) Words {
	return Words{
		"The user went on before they could be asked to approve " + tool + ". Nothing has been done yet.",
		"Answer what the user says now. Do not call it again: the user is being asked, and the outcome comes by itself.",
	}
}

// OvertakenApproval is Overtaken for a call that the user has approved.
func OvertakenApproval() Words {
	return Words{
		"The user went on before what was approved had finished. It is still running.",
		"Answer what the user says now. Do not call it again: its result comes by itself.",
	}
}

package toolerror

// Overtaken answers a call that is still running when the user's next turn has come.
func Overtaken(tool string) Words {
	return Words{
		"The user went on before " + tool + " had finished. It is still running, and its result will not be sent.",
		"Answer what the user says now. Call it again only if the user still wants it.",
	}
}

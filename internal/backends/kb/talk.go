package kb

import "strings"

// talk are words that speakers use to ask for something but that do not name it: greetings,
// excuses, thinking aloud. Such words count less in a question. They are not stop
// words, since a record may be about them.
var talk = map[Language]string{
	"en": `actually afternoon ah alright anyhow anyone anything anyway apologies ask asked asking basically bit bother
		bothering bye chance cheers curious currently dear erm evening excuse explain figure find gentle getting give
		glad goodbye got guess guys happen hear hello help hey hi hmm honestly hope huh idea info just kind kindly
		know let like listen little look looking ma'am madam maybe mean mind moment morning need needed oh okay ok
		perhaps please pls possible possibly pretty probably quick quickly quite really right say saying see seems
		show sir so somebody someone something sorry sort stuff supposed sure talk tell telling thank thanks thing
		things think trying um uh understand wait wanna want wanted wanting well whether wonder wondered wondering
		yeah yep yes`,
	"de": `also ach äh ähm bescheid bestimmt bisschen bitte brauche brauchen bräuchte danke dankeschön eben eh
		eigentlich einfach entschuldige entschuldigen entschuldigung erklären erstmal erzählen etwa euch frage fragen
		gar gehen geht genau gern gerne gerade gesagt grade grüß grüezi gut guten hab haben hallo halt helfen
		herausfinden hey hi ihnen irgendwas irgendwer irgendwie irgendwo ja jemand jemanden kennen könnt könnte
		könnten kurz läuft mal man moin möchte möchten morgen na nachfragen nämlich naja nee nein nun ok okay quasi
		sag sage sagen sagt sagte schnell schön servus sorry tag tja überhaupt ungefähr verraten verzeihung vielleicht
		wahrscheinlich weiß weißt wisst wissen wohl wollen wollte würde würden zeigen zufällig`,
	"es": `acaso además ahora amable ayuda ayudar ayudarme bien bueno buena buenas buenos claro concreto conocer
		consulta cosa creo decir decirme dígame dime disculpa disculpe duda entonces eh exactamente explicar favor
		gracias gusta gustaría hablar hola igual importa información mire mira molestar moleste momento mucho necesito
		necesitar oiga oye ok okay pasa perdón perdona perdone podemos poder podría podrías posible pregunta preguntar
		puede puedes puedo pues querer quería querría quiero quisiera sabe saber sabes sé señor señora señorita tal
		tardes días noches usted ustedes vale verdad ver vosotros`,
	"fr": `aider aimerais ainsi allô alors besoin bah ben bien bon bonjour bonsoir bonne ça chose connaître crois
		déranger demande demander demandais dire dis dites dites-moi donc euh exactement excuse excusez explique
		expliquer faut faudrait hein info journée juste madame mademoiselle merci moment monsieur oh ok okay ouais oui
		pardon parler peut peux plaît possible pourrais pourrait pourriez pouvez pouvoir puis quelqu'un question
		renseignement sais salut savez savoir s'il sûr svp truc veux veuillez voilà voir voudrais voudrait vouloir
		vraiment`,
	"it": `aiutare aiutarmi allora buonasera buongiorno capire chiedere ciao cortesemente cortesia cosa dica dimmi
		dire dirmi domanda ecco favore forse grazie informazione magari mi piacerebbe posso potrebbe potresti prego sa
		sapere salve sai scusa scusi sì vorrei vuole`,
	"pt": `ajudar ajuda alô bem boa bom coisa desculpa desculpe diga dizer dúvida então favor gostaria informação
		obrigada obrigado oi olá pergunta perguntar pode poderia podes posso precisava preciso queria quero saber sabe
		sabes talvez tarde dia noite você`,
	"nl": `alstublieft alsjeblieft bedankt dag dank eigenlijk even ga goed goedemiddag goedemorgen goedenavond graag
		hallo helpen hoi ja kan kunnen kunt misschien mag nou oké pardon sorry vertellen vraag vragen weet weten wil
		willen wilde zeggen zou`,
}

// small reports whether a word of a question says little about what is asked. The question's
// language may be unknown.
func (a *Analyzer) small(word string, own Language) bool {
	if own != Unknown {
		return a.dialects[own].talk[word]
	}
	for _, d := range a.dialects {
		if d.talk[word] {
			return true
		}
	}
	return false
}

// talkWords returns the words of a list, with and without their accents.
func talkWords(list string) map[string]bool {
	all := map[string]bool{}
	for _, t := range Tokens(strings.Join(strings.Fields(list), " ")) {
		all[t.Text], all[Fold(t.Text)] = true, true
		if other := respell(t.Text); other != "" {
			all[other] = true
		}
	}
	return all
}

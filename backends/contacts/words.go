package contacts

// The words by which persons are recognised. All are in lower case.
var (
	titles = set(`dr prof professor mr mrs ms mx miss sir dame lord lady herr frau hr mme mlle madame monsieur mademoiselle señor
		señora señorita signor signora signore dott dottoressa dottore rev reverend hon doctor doktor dipl ing mag pd judge justice
		senator ambassador captain colonel`)
	// titleParts continue a title that has begun.
	titleParts  = set(`med rer nat phil jur iur habil hc h c dent vet oec pol theol ing kfm inf dr prof ing`)
	degreeWords = set(`phd ph md mba msc bsc ma ba llm jd esq cpa pmp frs obe cbe mbe dphil m b`)
	suffixes    = set(`jr sr ii iii iv`)
	particles   = set(`van von der den de del della di da dos du la le el al bin ibn ter ten zu zum zur y e af av`)
	articles    = set(`the our a an my your their his her its der die das den dem unser unsere unserer ihr ihre le la les notre votre un une el nuestro
		nuestra il nostro nostra currently`)
	copulas      = set(`is was becomes ist wurde war est es è`)
	prepositions = set(`of for der des für fuer im de du del della di to d`)
	joins        = set(`and und et y e`)
	// enders are lower-case words that end a complement.
	enders = set(`at is are was were will would can could has have had who which that with from in on to by as for says said since until bei
		ist war hat wird kann mit von seit the a an our we you i he she they it please call write or`)

	modifiers = set(`senior junior lead principal chief deputy associate assistant acting interim co vice executive managing general global
		regional technical creative artistic product project program programme sales marketing account customer user human data software
		research press office team design engineering head staff founding stellvertretende stellvertretender leitende leitender kaufmännische
		kaufmännischer technische technischer wissenschaftliche wissenschaftlicher`)

	roles = set(`ceo cto cfo coo cmo cio ciso cpo chro cro evp svp vp president vice-president director director-general manager head lead
		leader chair chairman chairwoman chairperson officer founder co-founder cofounder partner owner co-owner principal engineer designer
		developer architect scientist researcher analyst consultant advisor adviser coordinator administrator secretary treasurer assistant
		editor editor-in-chief journalist reporter author lawyer attorney counsel solicitor barrister accountant controller recruiter
		specialist strategist producer curator librarian teacher lecturer professor dean rector provost fellow nurse physician surgeon
		spokesperson spokeswoman spokesman representative buyer planner technician supervisor superintendent mayor minister programmer
		photographer translator psychologist economist
		geschäftsführer geschäftsführerin leiter leiterin leitung direktor direktorin vorstand vorstandsvorsitzende vorstandsvorsitzender
		inhaber inhaberin prokurist prokuristin referent referentin sachbearbeiter sachbearbeiterin ingenieur ingenieurin entwickler
		entwicklerin berater beraterin assistent assistentin sekretärin sprecher sprecherin anwalt anwältin rechtsanwalt rechtsanwältin
		architektin architekt professorin dozent dozentin gründer gründerin chefin chef präsident präsidentin
		directeur directrice responsable gérant gérante président présidente chargée chargé ingénieur ingénieure secrétaire
		directora gerente jefe jefa ingeniero ingeniera presidente fundador fundadora responsabile direttore direttrice amministratore`)
	// roleEndings make a German compound a role, with or without "in".
	roleEndings = []string{"leiter", "führer", "chef", "manager", "direktor", "ingenieur", "entwickler", "berater", "assistent", "referent",
		"beauftragte", "beauftragter", "präsident", "sprecher", "architekt", "anwalt", "anwältin", "gründer", "vorsitzende", "vorsitzender"}

	// fields are fields of work. Two of them are not a name, and one before a slash is the
	// first half of a position: "Data Science / Head of Analytics".
	fields = set(`front back full stack end desk frontend backend fullstack devops quality assurance machine learning artificial intelligence
		social media content public relations investor cloud security cyber network supply chain logistics success night day shift real estate
		scrum master agile business inside event events operational people talent human executive managing senior junior lead deputy creative
		technical sales marketing engineering hardware data science analytics digital mobile web game video sound film interior graphic
		visual industrial fashion investment private equity risk tax legal compliance audit procurement purchasing warehouse store shop
		retail branch loan client user experience interface growth brand performance plumber carpenter electrician pastry chef kitchen
		studio stage production product project program community customer field site safety health clinical medical regulatory strategy
		innovation training education general information system database platform infrastructure reliability test testing automation
		personal personnel payroll accounting financial treasury corporate internal external communication communications press editorial
		personalwesen vertrieb einkauf buchhaltung verwaltung marketing technik produktion lager empfang kundendienst öffentlichkeitsarbeit`)

	// stops begin with a capital but are not names, mostly at the start of a sentence.
	stops = set(`the our my your their his her its this that these those there here a an and or but if when while where who what why how
		which i we you he she they it is are was were be been am do does did has have had will would can could may might shall should must
		not no yes ok please thanks thank dear hi hello hey good morning afternoon evening best kind warm regards greetings sincerely yours
		cheers contact contacts call ask meet email e-mail mail phone tel telephone mobile fax web website address from to cc bcc re fw fwd
		subject date sent on at in of for with by as also however yesterday today tomorrow now then later soon since after before because
		monday tuesday wednesday thursday friday saturday sunday january february march july september october november december
		let see note nb ps attn signed reach speak talk write visit join welcome new both all each every some any one two three
		liebe lieber sehr geehrte geehrter hallo guten tag morgen abend freundliche freundlichen grüße grüßen gruß mit bitte danke unser unsere
		der die das ein eine ich wir sie er es und oder aber wenn ist sind war rufen schreiben telefon handy montag dienstag mittwoch donnerstag
		freitag samstag sonntag heute gestern im am bei von für ihre ihr
		bonjour cher chère merci le la les un une nous vous et hola estimado estimada gracias el los`)
	// notNames turn the words around them into a company, a place or a thing.
	notNames = set(`ltd limited inc incorporated llc llp plc gmbh ag kg ug ohg sa sas sarl srl spa bv nv oy ab aps corp corporation company
		co group holding holdings university universität college institute institut school academy department dept division team office
		bureau agency ministry bank street st road avenue lane square platz straße strasse weg allee city york francisco angeles london
		paris berlin kingdom states republic europe america committee council board foundation association society museum hospital
		research resources development sales marketing engineering operations finance services service systems solutions software support
		technology technologies international news times journal conference project report meeting`)
)

package config

// stateProblems are problems of storage and of the limits of tools. TestProblems runs them.
var stateProblems = []wrong{
	{"another server's settings without one", "store:\n  credentials: me.creds\n  replicas: 3\n", nil, nil, []string{
		`VOICEGW_STORE_URL: store.url is missing; store.credentials are`,
		`dir/voicegw.yaml:3: store.replicas is 3, but without store.url`,
	}},
	{"no URL of a store", "", []string{"VOICEGW_STORE_URL=nats://a:4222,localhost:4222"}, nil, []string{`VOICEGW_STORE_URL: store.url must be nats://host:4222`}},
	{"a password in the store's URL", "store: {url: 'nats://me:hush@a:4222'}\n", nil, nil, []string{`dir/voicegw.yaml:1: store.url has a user, a password or a token; they belong`}},
	{"a store's numbers and words", "store: {replicas: 6, url: 'tls://a', sync: never}\n", nil, nil, []string{
		`dir/voicegw.yaml:1: store.sync must be one of always, interval, not "never".`,
		`dir/voicegw.yaml:1: store.replicas must be from 1 to 5, not 6.`,
	}},
	{"a cluster without its address", "cluster:\n  url: http://a:1\n", nil, nil, []string{`VOICEGW_CLUSTER_LISTEN: cluster.listen is missing; name the address`}},
	{"a cluster with an address alone", "cluster:\n  listen: a\n", nil, nil, []string{
		`dir/voicegw.yaml:2: cluster.listen must be an address with a port`,
		`VOICEGW_CLUSTER_URL: cluster.url is missing; name`,
		`VOICEGW_CLUSTER_SECRET: cluster.secret is missing; make one with`,
		`VOICEGW_STORE_URL: store.url is missing; cluster.listen needs`,
	}},
	{"a cluster's wrong address and short secret", "store: {url: 'nats://a'}\ncluster: {listen: ':1', url: 'a:1', secret: short}\n", nil, nil, []string{
		`dir/voicegw.yaml:2: cluster.url must be a whole URL`,
		`dir/voicegw.yaml:2: cluster.secret has 5 bytes and could be guessed`,
	}},
	{"the audit", "audit:\n  arguments: some\n  max_mb: 0\n  keep: 0\n  max_age: 1m\n", nil, nil, []string{
		`dir/voicegw.yaml:2: audit.arguments must be one of none, redacted, full, not "some".`,
		`dir/voicegw.yaml:3: audit.max_mb must be from 1`,
		`dir/voicegw.yaml:4: audit.keep must be from 1`,
		`dir/voicegw.yaml:5: audit.max_age must be from 1h`,
	}},
	{"budgets", "budget:\n  voice: {retrieval: 0}\n  text: {total: 0, top_k: 0, tool_time: -1s}\nagent:\n  budget: {voice: {total: -1}, text: {tool_time: 1h}}\n", nil, nil, []string{
		`dir/voicegw.yaml:2: budget.voice.retrieval must be from 1 to 1000, not 0.`,
		`dir/voicegw.yaml:3: budget.text.total must be from 1`,
		`dir/voicegw.yaml:3: budget.text.top_k must be from 1`,
		`dir/voicegw.yaml:3: budget.text.tool_time must be from 0s to 10m0s, not -1s.`,
		`dir/voicegw.yaml:5: agent.budget.voice.total must be from 0`,
		`dir/voicegw.yaml:5: agent.budget.text.tool_time must be from 0s`,
	}},
	{"confirmations", "confirmation:\n  voice: nod\n  life: 9s\n  require: {a: b}\n", nil, nil, []string{
		`dir/voicegw.yaml:4: confirmation.require must be a list, not a section.`,
		`dir/voicegw.yaml:2: confirmation.voice must be one of button, spoken, not "nod".`,
		`dir/voicegw.yaml:3: confirmation.life must be from 10s to 1h0m0s, not 9s.`,
	}},
	{"a home folder", "data_dir: ~/voicegw\n", nil, []Flag{{"--set", "audit.file", "~/audit"}}, []string{
		`dir/voicegw.yaml:1: data_dir has a ~, which only a shell understands; write the whole path.`,
		`--set: audit.file has a ~`,
	}},
	{"standard output as a folder", "data_dir: '-'\n", nil, nil, []string{`dir/voicegw.yaml:1: data_dir is "-"; name a file or a folder.`}},
	{"a short key", "api_key: hush-hush\n", nil, nil, []string{`dir/voicegw.yaml:1: api_key has 9 characters and could be guessed; make one of at least 16`}},
}

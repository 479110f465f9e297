# Commands for people and machines. Targets longer than a line are scripts in scripts/.

.DEFAULT_GOAL := help
.PHONY: help image run build tools quick test release count lint docs fmt unit model chaos cluster damage load rotations soak fuzz stress bench bench-floods bench-traces bench-wires bench-compare bench-web web test-clients newer vulncheck clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

image: ## The container image voicegw:local, with buildah or docker (IMAGE=name:tag)
	./scripts/image

run: build ## Build and serve on http://127.0.0.1:8080 (ARGS="--provider openai")
	./bin/voicegw serve $(ARGS)

build: ## Build the tools, and bin/voicegw with them
	./scripts/build

tools: build ## Check the tools in tools/ and build them into bin/voicegw

test: ## Everything that CI runs: lint, tests with the race detector, fuzzing what changed, client tests
	./scripts/test

quick: ## Build, vet and test the core in less than a minute
	./scripts/quick

release: ## Build archives for five platforms, bills of materials, image and checksums in bin/release (PLATFORMS="linux/amd64")
	./scripts/release

count: ## Print the size of the code and the docs, and the limits
	@go run ./scripts/dev count

lint: ## Check the formatting and run the pinned linters
	./scripts/lint

docs: ## Write the generated lists: settings, example configuration, metrics, errors
	go test ./config ./internal/metrics ./session -run '^TestGenerated' -update-docs

fmt: ## Format the Go code
	gofmt -w $$(./scripts/gofiles)

unit: ## Run only the Go tests, with the race detector and then those that need it off
	./scripts/unit
	./scripts/test-norace.sh

model: ## Explore every state of the protocol models (MODEL=SideEffects for one of them)
	./scripts/model $(MODEL)

chaos: ## Run 200 sessions for 3 minutes with faults of every kind (CHAOS_SEED=7)
	./scripts/chaos

cluster: ## Three gateways, three NATS servers, 200 sessions: cuts, drain, kill, zombie (NODES_SESSIONS=50)
	./scripts/cluster

damage: ## Try every kind of damage on every file of a data folder; the tests try a sample
	VOICEGW_DAMAGE=all go test ./store -run 'TestDamage$$' -timeout 30m

load: build ## 500 sessions of speech and tools against a gateway started here (LOAD_SESSIONS=50)
	./scripts/load-500

rotations: build ## Replace connections to the model during speech, on both wires, unnoticed
	./scripts/rotations

soak: build ## Run 100 callers for 30 minutes and check for leaks (SOAK_FOR=2m)
	./scripts/soak

stress: ## Repeat every package's tests on a busy machine (STRESS_FOR=600; ARGS=./session)
	./scripts/stress $(ARGS)

fuzz: ## Fuzz every parser (FUZZTIME=60s for each)
	./scripts/fuzz $${FUZZTIME:-60s}

bench: ## Benchmarks: audio path, codecs, running gateway (BENCHTIME=1s)
	./scripts/bench

bench-floods: ## Measure sessions during floods of each kind: gaps, pings, memory (FLOOD_FOR=3s)
	go test -run '^$$' -bench Floods -benchtime 1x -timeout 30m ./e2e

bench-traces: ## Measure sessions with trace collectors that hang, refuse or are slow (TRACES_SESSIONS=200, TRACES_FOR=10s)
	go test -run '^$$' -bench Traces -benchtime 1x -timeout 30m ./e2e

bench-wires: ## Compare the client wires: CPU per frame, memory per session, added latency
	go test -run '^$$' -bench Wires -benchtime 1x -timeout 30m ./e2e

bench-compare: ## Compare CPU and memory of the relay with the last release (ARGS=revision)
	./scripts/bench-compare $(ARGS)

bench-web: ## Measure the page in Chromium (BENCH_MINUTES=2)
	./scripts/bench-web.sh

web: ## Build the embedded console from its TypeScript
	./scripts/build-web

test-clients: ## Official npm clients against the simulator and a gateway
	./scripts/test-clients.sh

newer: ## List newer versions of the official clients and SDKs
	./scripts/newer

vulncheck: ## Check the program with govulncheck
	./scripts/vulncheck

clean: ## Remove build results
	rm -rf bin dist

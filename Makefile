# `make run` serves a demo sale, `make test` tests everything, `make check` is the
# long check before a release.
# They need nothing but Go and make; what tests need beyond that they find or install.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## build bin/seckill, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/seckill ./cmd/seckill

.PHONY: run
run: build ## serve a demo sale that opens in seconds
	./bin/seckill serve --demo

.PHONY: test
test: ## test everything, with the race detector
	GO='$(GO)' ./test/run

.PHONY: check
check: ## everything, before a release: tests, models, torture, fuzzing, soak (TORTURE=10m FUZZTIME=30s SOAK=20m)
	GO='$(GO)' MAKE='$(MAKE)' ./test/check

.PHONY: lint
lint: ## lint with golangci-lint, as .golangci.yml says
	GO='$(GO)' ./test/lint $(ARGS)

# The suites in which a store on a server is used or killed.
MYSQL_SUITES = ./internal/store/storesql ./internal/app ./test/server ./test/engine ./test/e2e ./test/instance ./test/outage

.PHONY: test-mysql
test-mysql: ## test the store on MySQL instead of MariaDB (MYSQLD=/path/to/mysqld)
	SECKILL_TEST_MYSQLD=$${MYSQLD:-mysqld} $(GO) test -p 1 -count=1 -timeout 30m $(MYSQL_SUITES)

.PHONY: crash
crash: ## kill -9 the real binary many times under load (ROUNDS=200)
	SECKILL_CRASH_ROUNDS=$${ROUNDS:-200} $(GO) test -count=1 -timeout 60m -v ./test/crash

.PHONY: rolling
rolling: ## restart two instances behind nginx one after the other under load: no request fails (ROUNDS=20)
	SECKILL_ROLLING_RESTARTS=$${ROUNDS:-20} $(GO) test -count=1 -timeout 60m -v -run '^TestRollingRestart_' ./test/instance

.PHONY: power-cuts
power-cuts: ## cut the power of everything at once under load, with the journal of promises and without (ROUNDS=50)
	SECKILL_POWERCUT_ROUNDS=$${ROUNDS:-50} $(GO) test -count=1 -timeout 0 -v -run '^TestPowerCut_' ./test/outage

.PHONY: takeovers
takeovers: ## have the store take sales over and return them under load, with every fault (ROUNDS=10)
	SECKILL_TAKEOVERS=$${ROUNDS:-10} $(GO) test -count=1 -timeout 60m -v -run '^TestTakeover_' ./test/outage

.PHONY: torture
torture: ## random faults under load, then all checks (DURATION=5m SEED=… FAULTS='power cut,clock' TOPOLOGY=sentinel QUEUE=kafka)
	mkdir -p bin
	SECKILL_TORTURE=$${DURATION:-5m} SECKILL_OUTAGE_SEED=$(SEED) SECKILL_TORTURE_TOPOLOGY=$(TOPOLOGY) SECKILL_TORTURE_QUEUE=$(QUEUE) SECKILL_TORTURE_FAULTS='$(FAULTS)' SECKILL_TORTURE_REPORT=$${REPORT:-$(CURDIR)/bin/torture.md} \
		$(GO) test -count=1 -timeout 0 -v -run '^TestTorture$$' ./test/outage

.PHONY: soak
soak: ## count every product under load again and again: no false alarm (DURATION=20m)
	SECKILL_SOAK=$${DURATION:-20m} $(GO) test -count=1 -timeout 0 -v -run '^TestCountsUnderTraffic' ./test/outage

.PHONY: shop-campaign
shop-campaign: ## kill the example shop, the engine and the network between, then compare orders (DURATION=3m SEED=…)
	SECKILL_SHOP_FOR=$${DURATION:-3m} SECKILL_SHOP_SEED=$(SEED) $(GO) test -count=1 -timeout 0 -v -run '^TestCampaign_' ./test/shop

.PHONY: fuzz
fuzz: ## run every fuzz target, and odd requests through proxies (FUZZTIME=30s each)
	GO='$(GO)' FUZZTIME=$${FUZZTIME:-30s} ./test/fuzz

.PHONY: contract
contract: ## have schemathesis try openapi.yaml at the real binary, for longer (EXAMPLES=200 SEED=…)
	SECKILL_CONTRACT_EXAMPLES=$${EXAMPLES:-200} SECKILL_CONTRACT_SEED=$${SEED:-$$(date +%s)} $(GO) test -count=1 -timeout 0 -v ./test/contract

.PHONY: model
model: ## explore the models of the protocols (some minutes)
	./test/model/run

.PHONY: bench
bench: ## Go benchmarks of the hot path
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

.PHONY: shots
shots: ## take the pictures of docs/shots, of the real page in a real browser
	mkdir -p docs/shots
	SECKILL_WEB_SHOTS=$(CURDIR)/docs/shots $(GO) test -count=1 -run '^TestShots$$' ./test/browser

.PHONY: docs
docs: ## regenerate the pages of docs/reference that follow the code
	$(GO) test ./internal/config -run TestDocumentation -update
	$(GO) test ./cmd/seckill -run TestCommandsPage -update
	$(GO) test . -run TestErrorsPage -update

.PHONY: clean
clean: ## remove what was built
	rm -rf bin

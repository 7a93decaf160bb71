# `make run` and `make test` do all set-up themselves; see README.md.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON := .venv/bin/python
# A display, if there is one: then `run` opens the window.
DISPLAY_HERE := $(or $(WAYLAND_DISPLAY),$(DISPLAY))

.PHONY: help run test test-fast fuzz soak lint format pictures shots bench package package-check gpu-check setup languages lock install-desktop uninstall-desktop clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 26

run: ## Start: the window, or without a display the demo model and the endpoint
	@packaging/setup.sh $(if $(DISPLAY_HERE),window,run)
	@packaging/run.sh

test: ## Set up, build the llama.cpp engine, check the code, run every test
	@packaging/setup.sh test
	@packaging/test.sh

test-fast: ## Run the unit tests and the pages of the window: no engine, a few minutes
	@packaging/setup.sh test
	@packaging/test.sh fast

fuzz: ## Send hostile requests and files for as long as asked: [REQUESTS=20000] [MINUTES=1 for each kind of file] [SEED=N]
	@packaging/setup.sh test
	@packaging/fuzz.sh $(if $(REQUESTS),--requests $(REQUESTS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

soak: ## Hundreds of streams against a fake engine for an hour, or for [MINUTES=5]: nothing grows, nothing is lost
	@packaging/setup.sh test
	@packaging/soak.sh $(if $(MINUTES),--minutes $(MINUTES)) $(if $(STREAMS),--streams $(STREAMS))

lint: ## Check style and types only
	@packaging/setup.sh test
	@packaging/lint.sh

format: ## Bring the code into the project's style
	@packaging/setup.sh test
	@.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format --quiet .

pictures: ## Renew the reference pictures of tests/views/pictures, after a change of the look that was meant
	@packaging/setup.sh test
	@SNDR_RENEW_PICTURES=1 $(PYTHON) -m pytest -n 0 -q tests/views/pictures/test_pages.py

shots: ## Take pictures of every page in both themes, into docs/images/
	@packaging/setup.sh test
	@packaging/shots.sh

bench: ## Measure in under five minutes: start-up, the endpoint against the bare server, window and host at work and idle; [FULL=1]
	@packaging/setup.sh test
	@packaging/bench.sh $(if $(FULL),--full)

package: ## Build into dist/: the wheel, and with a Python inside a .tar.gz and a .deb
	@packaging/setup.sh run
	@packaging/package.sh
	@packaging/frozen/build.sh

package-check: ## Start what `make package` made: window, answer, clean end; as root with debootstrap also in clean Debians
	@packaging/setup.sh test
	@$(PYTHON) packaging/smoke_test.py build/frozen/sndr-control-center
	@packaging/linux/check_clean.sh

gpu-check: ## Check the whole product on GPUs with a vLLM that is there: VLLM=PYTHON [GPUS=2] [ARGS="start restart equal prove quality"]
	@packaging/gpu/check.sh "$(VLLM)" $(if $(GPUS),--gpus $(GPUS)) $(ARGS)

setup: ## Only install what `run` needs
	@packaging/setup.sh window
	@echo 'Everything is there: make run starts the demo model, .venv/bin/sndr --help says what else there is.'

languages: ## Find the window's messages, keep what is translated, compile; packaging/languages/update.py --check checks
	@packaging/setup.sh test
	@$(PYTHON) packaging/languages/update.py

lock: ## Write packaging/locks/*.lock anew from pyproject.toml
	@packaging/setup.sh run
	@packaging/lock.sh

install-desktop: ## Put the program into this user's application menu, and `sndr` into ~/.local/bin
	@packaging/setup.sh window
	@packaging/linux/install-desktop.sh

uninstall-desktop: ## Take out of the application menu and ~/.local/bin what install-desktop put there
	@packaging/linux/install-desktop.sh --remove

clean: ## Remove the environment, the links to it and what tools left; models, settings and built engines stay
	@packaging/linux/install-desktop.sh --remove
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# make lab   the whole lab: report/report.html, from Python lines to measured op runs;
#            LAB="--model toy" gives its options
# make test  all tests of what happens in one process, and one of each part of the system
# make test-all also all others: processes, signals, the kernel's wall, tasks, the wheel, a browser
# make fast  the quick tests, which do without TensorFlow and draw nothing
# make test-versions the quick tests and those of the stages, on the oldest and the newest TensorFlow
#            and Python that tflab takes, each in an environment of its own in .venvs
# make check ruff, codespell, mypy and import-linter; types and lint of the JavaScript, where Node.js is
# make bench benchmarks against other tools, into benchmarks/RESULTS.md
# make docs  today's output into README.md and docs/
# make fuzz  damaged and made-up files against all that reads them, graphs at random against the kernel's wall
# make mutants mistakes planted in the code, against the tests; PACKAGE=analysis for one package, SAMPLE=200
#            and SEED=3 for some of them
# make clean removes .venv, .venvs, caches and runs

PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
READY = $(VENV)/ready
TESTABLE = $(VENV)/testable
EXTRAS = profile,report,code
TEST_EXTRAS = $(EXTRAS),test,dev
# Processes that run tests. Those of processes and pages wait, so more of them run than a small machine
# has cores.
WORKERS ?= 2
WAITING ?= 3
PAGE = tests/page
WITH =  # what else is required of the packages, such as tensorflow==2.18.*

# Python keeps what it compiles: commands and tests start sooner.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lab test test-all thorough fast approve stages test-versions check check-page bench docs fuzz mutants clean

LAB ?= --model lenet

lab: $(READY)
	$(BIN)/python -m tflab.report $(LAB)

QUICK = not tensorflow and not slow and not browser
ALSO = 'make test-all' adds the tests of processes, signals, the confined process, tasks, the wheel, watched programs and the browser.

test: fast
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not ($(QUICK)) and not thorough and not mnist"
	@echo "$(ALSO)"

# One run of both levels: what tests share is made once
test-all: fast
	$(BIN)/python -m pytest -n $(WAITING) --dist loadfile -m "not ($(QUICK))"

thorough: $(TESTABLE)
	$(BIN)/python -m pytest -n $(WAITING) --dist loadfile -m "thorough or mnist"

fast: $(TESTABLE)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -p tests.without_tensorflow -m "$(QUICK)" \
	  $(shell grep -rLE --exclude-dir=browser "^pytestmark = .*pytest.mark.(tensorflow|slow)" tests --include='test_*.py')

approve: $(TESTABLE)
	APPROVE=1 $(BIN)/python -m pytest -q $(shell grep -rl "import approve" tests --include='test_*.py')

stages: $(TESTABLE)
	$(BIN)/python -m pytest -m "not mnist" -n $(WORKERS) --dist loadfile tests/lifecycle tests/runtime

test-versions:
	$(PYTHON) -m tools.on_versions

check: $(TESTABLE) check-page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

ifneq ($(shell command -v npm),)
check-page: $(PAGE)/node_modules/ready
	$(PAGE)/node_modules/.bin/tsc --project $(PAGE)
	$(PAGE)/node_modules/.bin/oxlint --config $(PAGE)/.oxlintrc.json tflab/report/page tflab/explore/page $(PAGE)/page.test.js
else
check-page:
	@echo "Node.js is not here: the JavaScript was not looked at."; [ "$$CI" != true ]
endif

$(PAGE)/node_modules/ready: $(PAGE)/package.json $(PAGE)/package-lock.json
	@# Not `npm ci`: the lock has the linter only for the platforms whose packages were at hand.
	npm install --prefix $(PAGE) --no-save --silent
	@touch $@

bench: $(TESTABLE)
	$(BIN)/python -m benchmarks

docs: $(TESTABLE)
	$(BIN)/python docs/refresh.py

fuzz: $(TESTABLE)
	$(BIN)/python -m pip install --quiet -r tools/fuzz/requirements.txt
	$(BIN)/python -m tools.fuzz

mutants: $(TESTABLE)
	$(BIN)/python -m tools.mutants $(PACKAGE) $(SAMPLE:%=--sample %) $(SEED:%=--seed %)

clean:
	rm -rf .venv .venvs build dist $(PAGE)/node_modules runs mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installs tflab, with these extras. Where the newest packages cannot be had together, those that were
# last seen to work are taken.
define install
	@echo "Installing tflab$(1) and what pyproject.toml requires."
	@$(BIN)/python -m pip install --quiet -e '.$(1)' $(WITH:%='%') || { \
	  echo "The newest packages cannot be installed together: taking those of constraints.txt." >&2; \
	  $(BIN)/python -m pip install --quiet -e '.$(1)' $(WITH:%='%') -c constraints.txt; }
endef

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(not (3, 10) <= v < (3, 14) and f"tflab needs Python 3.10 to 3.13; {sys.executable} is {v.major}.{v.minor}. Try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	@# The pip of an older Python takes forever to find versions that go together.
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(call install,[$(EXTRAS)])
	@touch $(READY)

$(TESTABLE): $(READY)
	$(call install,[$(TEST_EXTRAS)])
	@touch $(TESTABLE)

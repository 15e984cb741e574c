# make demo   a small dataset, its sidecar, its inspection, a trained policy
# make test   lint, types, tests
# make bench  speed against the decode limit; BENCH=--quick, or see BENCH=--help
# make setup  the environment alone; the other two make it first

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO ?= demo

APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0
LIB_DIRS := $(CONDA_PREFIX)/lib /opt/homebrew/lib /usr/local/lib
HAS_AVCODEC := { $(PYTHON) -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("avcodec"))' \
    || ls $(addsuffix /libavcodec.*,$(LIB_DIRS)) 2>/dev/null | grep -q .; }
HAS_FFMPEG := { $(HAS_AVCODEC) && command -v ffmpeg >/dev/null; }

# Run apt-get with the rights that there are; fail without asking for a password.
define apt_install
if ! command -v apt-get >/dev/null; then false; \
elif [ "$$(id -u)" = 0 ]; then $(APT) update >&2; $(APT) install -y --no-install-recommends $(1) >&2; \
elif sudo -n true 2>/dev/null; then \
    sudo -n env $(APT) update >&2; sudo -n env $(APT) install -y --no-install-recommends $(1) >&2; \
else false; fi
endef

.PHONY: setup python ffmpeg chromium demo test lint types tests clean

setup: $(READY)

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "error: $(PYTHON) is not Python 3.11 or later; name one with make PYTHON=…" >&2; exit 1; }

ffmpeg: | python
	@$(HAS_FFMPEG) || { $(call apt_install,ffmpeg); } || true
	@$(HAS_FFMPEG) || { \
	    echo "error: FFmpeg's shared libraries and its command line are missing, and cannot be installed from here" >&2; \
	    echo "  Debian, Ubuntu: sudo apt-get install ffmpeg" >&2; \
	    echo "  macOS:          brew install ffmpeg" >&2; \
	    echo "  conda:          conda install -c conda-forge 'ffmpeg<9'" >&2; \
	    exit 1; }

# Only tests of the page want it; without it they are skipped, and say so.
chromium: | python
	@command -v chromedriver >/dev/null || { $(call apt_install,chromium chromium-driver); } || true

$(READY): pyproject.toml constraints.txt | python ffmpeg
	@echo "Making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) 2>/dev/null \
	    || { { $(call apt_install,python3-venv); } && $(PYTHON) -m venv --clear $(VENV); } \
	    || { echo "error: $(PYTHON) -m venv does not work here; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install -qq --progress-bar off --disable-pip-version-check \
	    -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup ffmpeg
	@$(BIN)/python examples/demo.py --output $(DEMO)

test: lint types tests

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

tests: setup ffmpeg chromium
	@$(BIN)/python -m pytest -n 2 --dist worksteal

bench: setup
	@$(BIN)/python -m tests.benchmarks $(BENCH)

clean:
	@rm -rf $(VENV) $(DEMO)

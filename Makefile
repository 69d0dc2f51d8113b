# The main jobs of the course kit. Every target sets up .venv by itself when it is missing; nothing else is needed
# but Python 3.11-3.13, make and git. Another Python: make PYTHON=/path/to/python3.12 demo

PYTHON ?=
VENV := .venv
RUN := $(VENV)/bin/python
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= agg

.PHONY: demo test lab build train bench lint lock clean

demo: $(VENV)/.ready  ## build the student version, grade a made-up class, print its gradebook
	@$(RUN) -m grading demo

test: $(VENV)/.ready  ## all tests
	@$(RUN) -m pytest

lab: $(VENV)/.ready  ## JupyterLab in notebooks/
	@$(RUN) -m grading build
	@MPLBACKEND= $(VENV)/bin/jupyter lab --notebook-dir=notebooks

build: $(VENV)/.ready  ## reference.json, notebooks/ and the student bundles, from solutions/
	@$(RUN) -m grading build

train: $(VENV)/.ready  ## execute the solution notebooks into docs/gallery/ (up to an hour)
	@$(RUN) -m benchmarks.gallery

bench: $(VENV)/.ready  ## training, speed, checks and grading, against their peers, into results/ (hours)
	@$(RUN) -m pip install -q -c constraints.txt -e '.[bench]'
	@for name in 02_lunar_lander 03_ppo_details 04_continuous_control; do $(RUN) -m benchmarks.train $$name --seeds 5 || exit; done
	@for name in speed checks grading; do $(RUN) -m benchmarks.$$name || exit; done

lint: $(VENV)/.ready
	@$(VENV)/bin/ruff check .

lock: $(VENV)/.ready  ## write the versions that are installed into constraints.txt
	@(head -n 1 constraints.txt; $(VENV)/bin/pip freeze --exclude-editable | sed 's/+cpu$$//') >constraints.new
	@mv constraints.new constraints.txt

clean:
	rm -rf build $(VENV) *.egg-info

$(VENV)/.ready: pyproject.toml constraints.txt tools/setup.sh
	@sh tools/setup.sh "$(VENV)" "$(PYTHON)"
